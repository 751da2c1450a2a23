//! nccl-tests' spellings mean what they mean there.

use hpcbench_model::{DType, RedOp};

use crate::run::{hpcbench, run_of};

#[test]
fn short_and_long_names_are_the_same() {
    let short = "reduce -b 16 -e 64 -f 2 -n 6 -w 2 -m 3 -c 2 -o max -d int32 -r 1 -a 3 -N 1 -u 1 \
                 -z 0 -C 0 -S 0 -T 100";
    let long = "reduce --minbytes 16 --maxbytes 64 --stepfactor 2 --iters 6 --warmup_iters 2 \
                --agg_iters 3 --check 2 --op max --datatype int32 --root 1 --average 3 \
                --run_cycles 1 --unalign 1 --blocking 0 --report_cputime 0 --report_timestamps 0 \
                --timeout 100";
    let [short, long] =
        [short, long].map(|arguments| run_of(&hpcbench(2, arguments).finish().expect_success()));
    assert_eq!(short.settings, long.settings);
    let s = &short.settings;
    assert_eq!((s.min_bytes, s.max_bytes, s.step_factor, s.step_bytes), (16, 64, Some(2), None));
    assert_eq!((s.iters, s.warmup_iters, s.agg_iters, s.checks), (Some(6), 2, 3, 2));
    assert_eq!(s.average, "max");
    for run in [&short, &long] {
        assert_eq!(run.rows.len(), 6);
        for row in &run.rows {
            let named = (row.dtype, row.redop, row.root, row.wrong);
            assert_eq!(named, (DType::Int32, Some(RedOp::Max), Some(1), Some(0)));
        }
    }
}

#[test]
fn getopts_ways_of_writing_are_taken() {
    // Unambiguous beginnings of long names, `=`, values joined to short names; the last one wins.
    let arguments = "allreduce --min 8 --max=32 --stepf 4 -n9 --iter 5 -dint8 -w 7 -w0";
    let run = run_of(&hpcbench(2, arguments).finish().expect_success());
    let s = &run.settings;
    assert_eq!((s.min_bytes, s.max_bytes, s.step_factor), (8, 32, Some(4)));
    assert_eq!((s.iters, s.warmup_iters), (Some(5), 0));
    assert!(run.rows.iter().all(|row| row.dtype == DType::Int8));
}

#[test]
fn a_step_in_bytes_is_the_default() {
    let run = run_of(&hpcbench(2, "allreduce -b 8 -e 40 -i 16 -n 1").finish().expect_success());
    let sizes: Vec<u64> = run.rows.iter().step_by(2).map(|row| row.bytes).collect();
    assert_eq!((sizes, run.settings.step_bytes), (vec![8, 24, 40], Some(16)));
}

#[test]
fn aliases_of_types_are_taken() {
    for (alias, dtype) in [("bf16", DType::Bfloat16), ("f64", DType::Double), ("fp16", DType::Half)]
    {
        let finished = hpcbench(2, &format!("allreduce -b 8 -e 8 -n 1 -d {alias}")).finish();
        assert_eq!(run_of(&finished.expect_success()).rows[0].dtype, dtype);
    }
}

#[test]
fn all_roots_are_minus_one_too() {
    let run = run_of(&hpcbench(3, "broadcast -b 8 -e 8 -n 1 -r -1").finish().expect_success());
    let roots: Vec<_> = run.rows.iter().step_by(2).map(|row| row.root).collect();
    assert_eq!(roots, [Some(0), Some(1), Some(2)]);
}

#[test]
fn averages_are_over_the_ranks_asked_for() {
    let run = |a: u32, name: &str| {
        let arguments = format!("allreduce -b 8 -e 8 -n 5 -a {a}");
        let run = run_of(&hpcbench(2, &arguments).finish().expect_success());
        assert_eq!(run.settings.average, name);
    };
    run(0, "rank0");
    run(1, "avg");
    run(2, "min");
}

#[test]
fn without_sizes_a_built_in_sweep_runs_and_says_so() {
    let finished = hpcbench(2, "allreduce --time-budget 1ms -c 0").finish().expect_success();
    assert!(finished.stdout.contains("built-in sweep"), "{}", finished.stdout);
    let run = run_of(&finished);
    let (first, last) = (run.rows.first().unwrap(), run.rows.last().unwrap());
    assert_eq!((first.bytes, last.bytes), (8, 32 << 20));
    assert!(finished.stdout.matches("built-in").count() == 1);
}

#[test]
fn sync_is_said_and_kept() {
    for (arguments, sync) in [
        ("", "none"),
        ("--sync barrier", "barrier"),
        ("-z 3", "barrier"),
        ("-z 1", "barrier-timed"),
    ] {
        let finished = hpcbench(2, &format!("allreduce -b 8 -e 8 -n 5 {arguments}")).finish();
        assert_eq!(run_of(&finished.expect_success()).settings.sync, sync);
    }
}
