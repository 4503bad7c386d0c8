# What the benchmarks say of a command line that is wrong. What they find is no test's.
load helpers

# wrong PATTERN NAME ARGUMENT...: that benchmark ends with exit code 2 and such a message, before it has done anything.
wrong() {
    local pattern=$1 name=$2 code=0
    shift 2
    /usr/bin/python3 "$HWNAS_SRC/benchmarks/$name" "$@" >out 2>err || code=$?
    [ $code = 2 ]
    says err "$name: error: $pattern"
    [ "$(ls)" = "$(printf '%s\n' err out)" ]
}

@test "a benchmark that has nothing to do says why" {
    wrong "argument --only: 'nope' is no problem: odd, even, or some of 0 to 39" problems --only nope
    wrong "argument --only: '7' is no problem: *some of 0 to 3 " problems --quick --only 2,7
    wrong "*--others*: at least 1" problems --others 0
    wrong "argument --seeds: at least 2" regret --seeds 1
    wrong "argument --jobs: at least 1" regret --jobs 0
}
