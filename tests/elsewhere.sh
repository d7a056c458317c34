#!/usr/bin/env bash
# Tests on another kind of processor, arm64 or amd64, emulated, in a folder with a Debian of its own:
# the native core's share of them, or those that are named. Needs root, debootstrap, qemu-user-static and a
# kernel that knows binfmt_misc. A machine of that kind runs them itself.
set -euo pipefail
cd "$(dirname "$0")/.."
kind=$1
shift
case $kind in
    arm64) machine=aarch64 number='\xb7' ;;
    amd64) machine=x86_64 number='\x3e' ;;
    *) echo "there is no kind of processor $kind: arm64 or amd64" >&2; exit 1 ;;
esac
root=$PWD/build/$kind
site=$root/coldq/site
tests=("$@")
if [ $# -eq 0 ]; then
    tests=(tests/native tests/slot/step/test_affine_rows.py tests/properties/test_identical_bits.py README.md)
fi
if [ "$(uname -m)" = $machine ]; then
    exec .venv/bin/python -m pytest "${tests[@]}"
fi

for tool in debootstrap qemu-$machine-static unshare; do
    command -v $tool >/dev/null || { echo "tests on $kind need $tool, which is not installed" >&2; exit 1; }
done
formats=/proc/sys/fs/binfmt_misc
[ -e $formats/register ] || mount -t binfmt_misc none $formats
if ! grep -qs enabled $formats/qemu-$machine; then
    head='\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00'$number'\x00'
    mask='\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff'
    printf '%s' ":qemu-$machine:M::$head:$mask:$(command -v qemu-$machine-static):OCF" >$formats/register
fi

inside() {  # what it is given, as root of the folder
    unshare --mount bash -c '
        mount -t proc proc "$0/proc"
        mount --rbind /dev "$0/dev"
        mount -t tmpfs none "$0/dev/shm"
        chroot "$0" /usr/bin/env -i HOME=/root LANG=C.UTF-8 PATH=/usr/sbin:/usr/bin:/sbin:/bin \
            QEMU_CPU=max bash -ec "$1"
    ' "$root" "$1"
}

if [ ! -e "$root/ready" ]; then
    rm -rf "$root"
    debootstrap --arch=$kind --variant=minbase --include=python3 bookworm "$root"
    touch "$root/ready"
fi
rm -rf "$root/coldq"
mkdir "$root/coldq"
git ls-files -z | xargs -0 cp --parents --target-directory="$root/coldq"
# What pip would take there, taken here, where it is not emulated.
python3 - >"$root/coldq/needed.txt" <<'P'
import tomllib

project = tomllib.load(open("pyproject.toml", "rb"))["project"]
extras = project["optional-dependencies"]
names = ("exact", "networks", "report", "metrics", "serve", "tables", "test")
needed = project["dependencies"] + [one for name in names for one in extras[name]]
print(*(one for one in needed if not one.startswith(("coldq", "pyright", "ruff"))), sep="\n")
P
.venv/bin/python -m pip install --quiet --target "$site" --python-version 3.11 --only-binary=:all: \
    --platform manylinux2014_$machine --platform manylinux_2_28_$machine --requirement "$root/coldq/needed.txt"
# The core, compiled here for there.
.venv/bin/python -m pip install --quiet --target build/zig-package ziglang
PYTHONPATH=build/zig-package .venv/bin/python native/compiler.py --for $machine "$root/coldq/src/coldq"
inside "cd /coldq; PYTHONPATH=src:site python3 -m pytest ${tests[*]}"
