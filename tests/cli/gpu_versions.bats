# Versions of NVIDIA's libraries and headers: every function that is looked up by its name is in them (which names those
# are is what the C library's loader writes down of a run on the stand-in, tests/gpu/, and no list of ours), and the
# module is built with headers of CUDA 12 and of older cuDNN.
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
    at=$(sed -n "s/^CUDA_LIBRARIES = //p" "$HWNAS_MODULES/Makefile")/$1
    [ -e "$at" ] || at=$(ldconfig -p | awk -v file="$1" '$1 == file { print $NF; exit }')
    test -e "$at"
    echo "$at"
}

@test "what is looked up in cuDNN, cuBLAS and NVRTC is in those of this machine" {
    names cudnn 'cudnn'
    names cublas 'cublas'
    names nvrtc 'nvrtc'
    [ "$(wc -l <cudnn)" -ge 28 ] # 10 for plans and 20 for running them, two of which are the same
    [ "$(wc -l <nvrtc)" -ge 9 ]
    [ "$(wc -l <cublas)" -ge 13 ]
    cudnn=$(installed libcudnn.so.9) || skip "no libcudnn.so.9 here"
    nvrtc=$(installed libnvrtc.so.13) || nvrtc=$(installed libnvrtc.so.12) || skip "no libnvrtc here"
    cublas=$(installed libcublasLt.so.13) || cublas=$(installed libcublasLt.so.12) || skip "no libcublasLt here"
    has "$cudnn" cudnn
    has "$cublas" cublas
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
    [ "$(wc -l <driver)" -ge 41 ]
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

# builds DIRECTORY...: the module, with the headers in these directories alone.
builds() {
    local directory options=()
    for directory; do options+=(-isystem "$directory"); done
    for file in "$HWNAS_SRC"/src/device/cudnn/*.c; do
        gcc -std=gnu11 -Wall -Wextra -Werror -fsyntax-only -DHWNAS_CUDA_LIBRARIES='""' "${options[@]}" \
            -I"$HWNAS_MODULES" -I"$HWNAS_MODULES/include" -I"$HWNAS_SRC/include" -I"$HWNAS_SRC/src" "$file"
    done
}

# older MINOR: in the directory old-MINOR cuDNN's headers, as if they were of version 9.MINOR.0, without attention as one
# operation, which NVIDIA's cudnn-frontend asks for since 9.13.1.
older() {
    cuda=$(sed -n "s/^CUDA_CPPFLAGS = -isystem //p" "$HWNAS_MODULES/Makefile")
    [ -e "$cuda/cudnn.h" ] || skip "built without CUDA"
    mkdir "old-$1"
    cp -L "$cuda"/cudnn*.h "old-$1"
    sed -i -E "s/^(#define CUDNN_([A-Z]+_)?MINOR) .*/\1 $1/; s/^(#define CUDNN_([A-Z]+_)?PATCH(LEVEL)?) .*/\1 0/" \
        "old-$1"/*.h
    sed -i '/SDPA_FWD/d' "old-$1"/cudnn_graph*.h
    [ -z "$(grep SDPA_FWD "old-$1/cudnn_graph.h")" ]
}

@test "the module is built with headers of cuDNN 9.8, 9.12 and 9.13" {
    local cuda minor
    for minor in 8 12 13; do
        older $minor
        builds "old-$minor" "$cuda"
    done
}

@test "names that older headers lack have the numbers that newer ones give them" {
    local cuda
    cuda=$(sed -n "s/^CUDA_CPPFLAGS = -isystem //p" "$HWNAS_MODULES/Makefile")
    [ -e "$cuda/cudnn.h" ] || skip "built without CUDA"
    grep -q SDPA_FWD "$cuda"/cudnn_graph*.h || skip "headers of an older cuDNN"
    # Once as the headers have them, once as we do.
    grep -oE '^#define CUDNN_[A-Z_]+' "$HWNAS_SRC/src/device/cudnn/cudnn_names.h" | sed 's/#define //' >ours
    [ "$(wc -l <ours)" -eq 7 ]
    {
        echo '#include <cudnn.h>'
        sed 's/.*/enum { THEIRS_& = & };/' ours
        echo '#undef CUDNN_VERSION'
        echo '#define CUDNN_VERSION 90800'
        echo '#include "device/cudnn/cudnn_names.h"'
        sed 's/.*/_Static_assert((int)& == THEIRS_&, "&");/' ours
    } >numbers.c
    gcc -std=gnu11 -fsyntax-only -isystem "$cuda" -I"$HWNAS_SRC/src" numbers.c
}

# Headers of 9.6 were seen to have the names in the table, but for those of a described GPU, which came with 9.8. A name
# that is not in it is to be looked up, and guarded where it is newer (cudnn_names.h).
@test "each of cuDNN's names that the module uses is known to be in headers of 9.8" {
    grep -ohE '\<CUDNN_[A-Z0-9_]+' "$HWNAS_SRC"/src/device/cudnn/*.[ch] | grep -vE '_$|^CUDNN_ATTR_NAME$' | sort -u >used
    [ "$(wc -l <used)" -gt 150 ]
    grep -oE '^#define CUDNN_[A-Z0-9_]+' "$HWNAS_SRC/src/device/cudnn/cudnn_names.h" | sed 's/#define //' |
        sort -u - <(grep -v '^#' "$HWNAS_SRC/tests/data/cudnn_names.txt") >known
    comm -23 used known >unknown
    cat unknown
    [ ! -s unknown ]
}

@test "the module is built with the headers of CUDA 12 that Debian has" {
    [ "${HWNAS_LONG:-}" ] || skip "downloads 1 GB: make check-long"
    command -v apt-get >apt-get || skip "no apt-get"
    local archive cuda version
    older 8
    non_free
    version=$(apt-cache "${archive[@]}" madison nvidia-cuda-dev | awk '$3 ~ /^12/ { print $3; exit }')
    [ "$version" ] || skip "no CUDA 12 in the archives that are configured"
    (cd apt && apt-get "${archive[@]}" download "nvidia-cuda-dev=$version") >>apt.out 2>&1
    dpkg --fsys-tarfile apt/*.deb | tar x --wildcards './usr/include/*.h'
    rm apt/*.deb
    grep -qE '^#define CUDA_VERSION 12[0-9]{3}$' usr/include/cuda.h
    mkdir new
    cp -L "$cuda"/cudnn*.h new
    builds old-8 usr/include
    builds new usr/include
    echo "# nvidia-cuda-dev $version" >&3
}
