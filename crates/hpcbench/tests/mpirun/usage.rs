//! Each mistake gets one message, from one rank, that says what to type instead; nothing is left.

use std::fs;

use crate::common::Finished;
use crate::run::hpcbench;

fn assert_refused(finished: &Finished, says: &[&str]) {
    let words = finished.words();
    assert_eq!(finished.code(), 2, "{words}");
    assert_eq!(finished.messages().len(), 1, "{words}");
    for text in says {
        assert!(finished.stderr.contains(text), "{text}\n{words}");
    }
    assert!(!finished.stderr.contains("panicked"), "{words}");
    assert!(finished.stdout.is_empty(), "{words}");
}

/// On three ranks, each of these arguments is refused with these texts.
fn refused(cases: &[(&str, &[&str])]) {
    for (arguments, says) in cases {
        let finished = hpcbench(3, arguments).finish();
        assert_refused(&finished, says);
        assert!(!finished.dir().join("run").exists(), "{}", finished.words());
    }
}

#[test]
fn sizes() {
    refused(&[
        ("allreduce -b 8X -e 64", &["`8X` is not a size", "such as 8, 64K or 1G"]),
        ("allreduce -b 8 -e 1e3", &["`1e3` is not a size"]),
        ("allreduce -b -8", &["-8"]),
        (
            "allreduce -b 64 -e 8",
            &["begins at 64 B and ends below it, at 8 B", "-b SMALL -e LARGE"],
        ),
        ("allreduce -b 64M", &["begins at 64 MiB", "without -e the last size is 32 MiB"]),
        ("allreduce -b 8 -e 64 -f 1", &["never leaves the first size", "-f 2"]),
        ("allreduce -b 8 -e 64 -f 0", &["never leaves the first size"]),
        ("allreduce -b 8 -e 64 -i 0", &["never leaves the first size", "-i BYTES"]),
        ("allreduce -b 0 -e 64 -f 2", &["cannot begin at 0", "write -b 8"]),
        ("broadcast -b 64G -e 64G", &["buffers for the 3 ranks", "use -e"]),
        ("broadcast -b 9000000T -e 9000000T", &["buffers for the 3 ranks", "use -e"]),
        ("allreduce -b 8 -e 64 -u 99999999", &["-u 99999999", "write a number of elements up to"]),
    ]);
}

#[test]
fn counts_and_times() {
    refused(&[
        ("allreduce -n 0", &["-n 0 measures nothing", "write 1 or more"]),
        ("allreduce -m 0", &["-m 0 measures nothing", "write 1 or more"]),
        ("allreduce -n many", &["many"]),
        ("allreduce --time-budget 0s", &["--time-budget 0", "such as 30s"]),
        ("allreduce --time-budget soon", &["--time-budget soon", "such as 500ms, 30s or 2m"]),
        ("allreduce --time-budget 1s -n 5", &["give one or the other"]),
        ("allreduce --precision 200%", &["--precision 200%", "such as 1%"]),
        ("allreduce --stall-timeout never", &["--stall-timeout never", "such as 500ms, 30s or 2m"]),
        ("allreduce --threshold 82", &["`82` is not a threshold", "such as 3x"]),
        ("allreduce --percentiles 50,100", &["--percentiles 100", "between 0 and 100"]),
        ("allreduce --raw-cap all", &["--raw-cap"]),
    ]);
}

#[test]
fn choices() {
    refused(&[
        ("allreduce -d float9", &["`float9` is not an element type", "bfloat16"]),
        ("allreduce -o xor", &["`xor` is not a reduction", "sum prod max min avg"]),
        ("allreduce -o mulsum", &["-o mulsum", "use -o sum"]),
        ("broadcast -b 8 -e 8 -r 3", &["-r 3", "ranks 0 to 2", "use one of them, or all"]),
        ("broadcast -b 8 -e 8 -r first", &["-r first", "such as 0, or all"]),
        ("allreduce -a 7", &["-a 7", "0 (rank 0), 1 (mean), 2 (min) or 3 (max)"]),
        ("allreduce -z 4", &["-z 4", "write 0, 1, 2 or 3"]),
        ("allreduce -z 1 --sync barrier", &["contradict each other", "give one of them"]),
        ("allreduce -I 2", &["-I 2", "write 0 or 1"]),
        ("allreduce -C 2", &["-C 2", "write 0 or 1"]),
        ("allreduce -b 8 -e 8 --inject-wrong 9:0", &["--inject-wrong 9", "ranks 0 to 2"]),
        ("allreduce --inject-wrong here", &["--inject-wrong here", "such as 1:100"]),
        ("pingpong --placement in", &["pingpong has no in-place form", "leave --placement in out"]),
        ("pingpong --two-way", &["--window"]),
        ("pingpong --window 0", &["--window"]),
        ("allreduce --window 4", &["unexpected argument '--window'"]),
        ("allreduce --surprise", &["unexpected argument '--surprise'"]),
        ("allreduse -b 8", &["allreduse", "'allreduce'"]),
    ]);
}

#[test]
fn options_of_nccl_tests_that_cannot_apply() {
    let host_memory = "there is no GPU in this measurement: leave it out";
    refused(&[
        ("allreduce -t 2", &["-t cannot apply", "mpirun -n"]),
        ("allreduce -g 2", &["-g cannot apply", "mpirun -n"]),
        ("allreduce -p 1", &["-p cannot apply", "leave it out"]),
        ("allreduce -y 1", &["-y cannot apply", host_memory]),
        ("allreduce -G 1", &["-G cannot apply", host_memory]),
        ("allreduce -R 1", &["-R cannot apply", host_memory]),
        ("allreduce -x 1", &["-x cannot apply", host_memory]),
        ("allreduce -D 1", &["-D cannot apply", host_memory]),
        ("allreduce -V 4", &["-V cannot apply", "the version is --version"]),
        ("allreduce -M 1", &["-M cannot apply", "leave it out"]),
    ]);
    for (variable, value, says) in [
        ("NCCL_TESTS_SPLIT", "AND 1", "NCCL_TESTS_SPLIT is set"),
        ("NCCL_TESTS_DEVICE", "1", "NCCL_TESTS_DEVICE is set"),
        ("NCCL_TESTS_MIN_BW", "fast", "NCCL_TESTS_MIN_BW=fast"),
    ] {
        let finished = hpcbench(2, "allreduce -b 8 -e 8").env(variable, value).finish();
        assert_refused(&finished, &[says]);
    }
}

#[test]
fn harmless_values_of_those_options_are_taken() {
    let options = "-t 1 -g 1 -p 0 -y 0 -G 0 -R 0 -x -1 -D 0 -M 0";
    hpcbench(2, &format!("allreduce -b 8 -e 8 -n 1 {options}")).finish().expect_success();
}

#[test]
fn a_directory_that_holds_a_run_stays_as_it_is() {
    let job = hpcbench(3, "allreduce -b 8 -e 8 -n 1");
    let dir = job.dir().join("run");
    fs::create_dir(&dir).unwrap();
    fs::write(dir.join("run.json"), "another run").unwrap();
    let finished = job.finish();
    assert_refused(&finished, &["already holds a run (run.json)", "--out OTHER_DIR"]);
    assert_eq!(fs::read_to_string(dir.join("run.json")).unwrap(), "another run");
    assert_eq!(fs::read_dir(dir).unwrap().count(), 1);
}

#[test]
fn places_that_cannot_be_written() {
    // Not even root makes a directory below a file.
    for (arguments, says) in [
        ("allreduce -b 8 -e 8 --out /dev/null/run", ["/dev/null/run", "--out OTHER_DIR"]),
        (
            "allreduce -b 8 -e 8 -J /dev/null/file",
            ["-J /dev/null/file: ", "name a file that can be written"],
        ),
    ] {
        let finished = hpcbench(3, arguments).finish();
        assert_refused(&finished, &says);
        assert!(!finished.dir().join("run").exists(), "{}", finished.words());
    }
}

#[test]
fn nothing_is_said_of_ranks_where_all_are_alike() {
    let finished = hpcbench(3, "allreduce -n 0").finish();
    assert!(finished.messages()[0].starts_with("hpcbench: -n 0"), "{}", finished.words());
}
