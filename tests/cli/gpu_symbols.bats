# Every function that is looked up by its name is in NVIDIA's own libraries. Which names those are is what the C
# library's loader writes down of a run on the stand-in (tests/gpu/), and no list of ours.
load helpers

# names FILE PATTERN: into FILE what a run on the stand-in looks up in it, of the names that begin so.
names() {
    [ -e "$HWNAS_MODULES/hwnas-cuda.so" ] || skip "built without CUDA"
    [ -e "$HWNAS_FAKE_GPU/libcuda.so.1" ] || skip "without the stand-in"
    [ -e loader ] || LD_DEBUG=symbols LD_DEBUG_OUTPUT=log HWNAS_PLANS=$PWD/plans \
        LD_LIBRARY_PATH=$HWNAS_FAKE_GPU:$HWNAS_FAKE_GPU/cudnn ends 0 profile mnist_mlp --device cuda:0 --seconds 0.05
    [ -e loader ] || grep -hoE "symbol=(cu|nv)[A-Za-z0-9_]*;  lookup in file=$HWNAS_FAKE_GPU/" log.* >loader
    rm -f log.* # 100 MB
    sed -nE "s/^symbol=($2[^;]*);.*/\1/p" loader | sort -u >"$1"
}

# has LIBRARY NAMES: each of the names is a function of the library.
has() {
    nm -D --defined-only "$1" | awk '$2 ~ /[TWi]/ { sub("@.*", "", $3); print $3 }' | sort -u >there
    [ "$(wc -l <there)" -gt 10 ]
    comm -23 "$2" there >lacking
    [ ! -s lacking ] && return
    echo "$1 lacks:"
    cat lacking
    return 1
}

# installed FILE: where the loader, or the build, finds a library of CUDA's.
installed() {
    local at
    at=$(sed -n "s/^CUDA_LIBRARIES = //p" "$HWNAS_MODULES/../Makefile")/$1
    [ -e "$at" ] || at=$(ldconfig -p | awk -v file="$1" '$1 == file { print $NF; exit }')
    test -e "$at"
    echo "$at"
}

@test "what is looked up in cuDNN and in NVRTC is in those of this machine" {
    names cudnn 'cudnn'
    names nvrtc 'nvrtc'
    [ "$(wc -l <cudnn)" -ge 28 ] # 10 for plans and 20 for running them, two of which are the same
    [ "$(wc -l <nvrtc)" -ge 9 ]
    cudnn=$(installed libcudnn.so.9) || skip "no libcudnn.so.9 here"
    nvrtc=$(installed libnvrtc.so.13) || nvrtc=$(installed libnvrtc.so.12) || skip "no libnvrtc here"
    has "$cudnn" cudnn
    has "$nvrtc" nvrtc
}

# Into `archive`, apt's options for the releases of Debian that this machine has, with what is not free of them, and a
# state of its own: the machine's sources stay as they are.
non_free() {
    mkdir -p apt/lists/partial apt/cache/archives/partial
    apt-get indextargets --format '$(ORIGIN) $(SITE) $(RELEASE)' 'Created-By: Packages' 2>apt.err | sort -u |
        awk '$1 == "Debian" && $3 !~ /-/ { print "deb", $2, $3, "non-free" }' >apt/sources
    [ -s apt/sources ] || skip "no archive of Debian is configured"
    [ ! -e /usr/share/keyrings/debian-archive-keyring.gpg ] ||
        sed -i 's,^deb,& [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg],' apt/sources
    archive=(-o "Dir::Etc::SourceList=$PWD/apt/sources" -o Dir::Etc::SourceParts=/dev/null
        -o "Dir::State=$PWD/apt" -o Dir::State::status=/dev/null -o "Dir::Cache=$PWD/apt/cache"
        -o "APT::Sandbox::User=$(id -un)" -o Acquire::Retries=1 -o Acquire::http::Timeout=20)
    apt-get "${archive[@]}" update >apt.out 2>&1 || skip "no archive to be reached: $(tail -n 1 apt.out)"
}

@test "what is looked up in NVIDIA's driver is in every one that Debian has" {
    [ "${HWNAS_LONG:-}" ] || skip "downloads drivers: make check-long"
    command -v apt-get >apt-get || skip "no apt-get"
    local archive version
    names driver 'cu[A-Z]'
    names nvml 'nvml[A-Z]'
    [ "$(wc -l <driver)" -ge 38 ]
    [ "$(wc -l <nvml)" -eq 7 ]
    non_free
    apt-cache "${archive[@]}" madison libcuda1 | awk '{ print $3 }' >versions
    [ -s versions ]
    while read -r version; do
        (cd apt && apt-get "${archive[@]}" download "libcuda1=$version" "libnvidia-ml1=$version") >>apt.out 2>&1
        for file in apt/*.deb; do dpkg -x "$file" "$version"; done
        rm apt/*.deb
        library=$(find "$PWD/$version" -name libcuda.so.1)
        has "$library" driver
        has "$(find "$version" -name libnvidia-ml.so.1)" nvml
        # With the driver and no GPU behind it, all is found, and what is missing is the GPU.
        CUDA_VISIBLE_DEVICES= LD_LIBRARY_PATH=${library%/*} ends 1 profile mnist_mlp --device cuda:0:own
        says err "NVIDIA's driver is here, but it sees no GPU"
        echo "# libcuda1 and libnvidia-ml1 $version: $(cat driver nvml | wc -l) functions" >&3
    done <versions
}
