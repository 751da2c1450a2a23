//! The table as its readers see it. A changed snapshot is a changed format: other programs read it.

use crate::fixtures::{Case, case, share};
use hpcbench_model::*;
use hpcbench_report::{Table, TableOptions};
use insta::assert_snapshot;

fn table(case: &Case, options: TableOptions) -> String {
    let per_iter = options.per_iter_skip.is_some();
    let text = case.render(&mut Table::new(options), per_iter);
    assert!(text.lines().all(|line| line.trim_end() == line), "trailing blanks");
    assert!(text.is_ascii());
    text
}

fn options() -> TableOptions {
    TableOptions {
        run_dir: Some("results/20261130T090000Z-allreduce-0c1d".to_owned()),
        ..TableOptions::default()
    }
}

#[test]
fn one_rank() {
    let case = case("allreduce", &["h1"], 1).with_rows(&[8, 1 << 20], 20);
    assert_snapshot!(table(&case, options()));
}

#[test]
fn four_ranks_with_who_and_events() {
    let mut case = case("allreduce", &["h1"], 4).with_rows(&[8, 65536, 64 << 20], 20000);
    case.run.settings.threshold = Some("3x".to_owned());
    let run = case.run.clone();
    for row in &mut case.run.rows {
        row.events = Some(200);
        row.slowest = vec![share(&run, 3, 0.71), share(&run, 0, 0.2)];
        row.last_in = vec![share(&run, 1, 0.64), share(&run, 2, 0.2)];
    }
    assert_snapshot!(table(&case, options()));
}

#[test]
fn even_shares_are_not_told() {
    let mut case = case("allreduce", &["h1"], 4).with_rows(&[8], 2000);
    let run = case.run.clone();
    for row in &mut case.run.rows {
        row.slowest = (0..4).map(|rank| share(&run, rank, 0.25)).collect();
        row.last_in = row.slowest.clone();
    }
    let text = table(&case, options());
    assert!(!text.contains("Inside longest") && !text.contains("Last to enter"), "{text}");
}

#[test]
fn two_hosts_whose_clocks_cannot_be_compared() {
    let mut case = case("allgather", &["h1", "h2"], 8).with_rows(&[4096, 1 << 20], 1000);
    let run = case.run.clone();
    for row in &mut case.run.rows {
        row.slowest = (8..16).map(|rank| share(&run, rank, 0.118)).collect();
    }
    case.run.settings.sync = "barrier".to_owned();
    assert_snapshot!(table(&case, options()));
}

#[test]
fn a_thousand_ranks_stay_legible() {
    let hosts: Vec<String> = (1..=128).map(|host| format!("h{host:03}")).collect();
    let hosts: Vec<&str> = hosts.iter().map(String::as_str).collect();
    let case = case("allreduce", &hosts, 8).with_rows(&[1 << 30], 100);
    assert_snapshot!(table(&case, options()));
}

#[test]
fn many_ranks_on_few_hosts_have_a_line_a_host() {
    let case = case("allreduce", &["h1", "h2", "h3"], 8).with_rows(&[8], 20);
    let text = table(&case, options());
    assert!(text.contains("# Ranks       24 on 3 hosts\n#             h1: ranks 0-7\n"), "{text}");
}

#[test]
fn wrong_elements() {
    let mut case = case("reduce", &["h1"], 4).with_rows(&[8, 1 << 20], 2000);
    let row = &mut case.run.rows[3];
    row.wrong = Some(1_234_567);
    row.first_wrong = Some(Wrong {
        rank: 0,
        host: "h1".to_owned(),
        offset: 17,
        got: "5".to_owned(),
        expected: "6".to_owned(),
    });
    assert_snapshot!(table(&case, TableOptions { min_busbw_gbps: Some(1.0), ..options() }));
}

#[test]
fn pingpong_has_no_in_place() {
    let mut case = case("pingpong", &["h1", "h2"], 1).with_rows(&[8, 1 << 20], 2000);
    case.run.settings.window = Some(64);
    case.run.settings.two_way = true;
    assert_snapshot!(table(&case, options()));
}

#[test]
fn unchecked_rows_say_so() {
    let mut case = case("alltoall", &["h1"], 4).with_rows(&[1 << 20], 20);
    assert!(row_fields(&table(&case, options()))[0].ends_with(&["N/A".to_owned()]));
    case.run.settings.checks = 0;
    case.run.rows.iter_mut().for_each(|row| row.wrong = None);
    let text = table(&case, options());
    assert!(text.contains("results not checked"), "{text}");
    let fields = row_fields(&text);
    assert_eq!((fields[0][8].as_str(), fields[0][12].as_str()), ("N/A", "N/A"));
}

#[test]
fn interrupted() {
    let mut case = case("allreduce", &["h1"], 2).with_rows(&[8, 32], 2000);
    case.run.rows.pop();
    case.run.complete = false;
    case.run.interrupted = Some("SIGTERM".to_owned());
    assert_snapshot!(table(&case, options()));
}

#[test]
fn nothing_measured() {
    let mut case = case("allreduce", &["h1"], 2);
    case.run.complete = false;
    assert_snapshot!(table(&case, TableOptions::default()));
}

#[test]
fn losses_and_findings() {
    let mut case = case("allreduce", &["h1", "h2"], 2).with_rows(&[8], 2000);
    case.run.rows[0].raw_dropped = 400;
    case.run.losses = (0..10)
        .map(|rank| Loss {
            what: format!("ranks/{rank:04}.bin"),
            rank,
            count: 120,
            why: "no space left on device".to_owned(),
        })
        .collect();
    case.run.raw_samples = vec![
        RawSamples {
            host: "h1".to_owned(),
            ranks: vec![0, 1],
            dir: "results/r".to_owned(),
            shared: true,
        },
        RawSamples {
            host: "h2".to_owned(),
            ranks: vec![2, 3],
            dir: "/scratch/r".to_owned(),
            shared: false,
        },
    ];
    case.run.findings = vec![Finding {
        locus: Locus {
            kind: LocusKind::Rank,
            host: Some("h2".to_owned()),
            rank: Some(3),
            nic: None,
            peer: None,
            direction: None,
        },
        effect: Effect {
            kind: "stall".to_owned(),
            text: "rank 3 on h2 did not arrive for 60 s".to_owned(),
            duration_ns: Some(60_000_000_000),
        },
        confidence: 1.0,
        alternatives: Vec::new(),
        evidence: Vec::new(),
        next_step: "look at process 4103 on h2".to_owned(),
    }];
    assert_snapshot!(table(&case, options()));
}

#[test]
fn per_iteration_columns_and_timestamps() {
    let mut case = case("allreduce", &["h1"], 2).with_rows(&[8, 1 << 20], 1001);
    case.run.settings.iters = Some(1001);
    let options = TableOptions { per_iter_skip: Some(1), timestamps: true, ..options() };
    assert_snapshot!(table(&case, options));
}

#[test]
fn wide() {
    let mut case = case("broadcast", &["h1"], 4).with_rows(&[8, 1 << 20], 2000);
    case.run.settings.precision = Some(0.01);
    case.run.settings.time_budget_s = Some(30.0);
    case.run.settings.iters = None;
    assert_snapshot!(table(&case, TableOptions { wide: true, cputime: true, ..options() }));
}

#[test]
fn types_and_reductions_are_told_apart_below() {
    let mut case = case("allreduce", &["h1"], 2).with_rows(&[8], 2000);
    case.run.rows[1].dtype = DType::Bfloat16;
    case.run.rows[1].redop = Some(RedOp::Avg);
    case.run.rows[1].cycle = 1;
    let text = table(&case, options());
    let names = text.lines().find(|line| line.contains("place      iters")).unwrap();
    assert!(names.contains("cycle      type  redop  place"), "{names}");
}

fn row_fields(text: &str) -> Vec<Vec<String>> {
    text.lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| line.split_whitespace().map(str::to_owned).collect())
        .collect()
}

#[test]
fn every_row_of_every_collective_has_thirteen_fields() {
    for collective in collective::ALL {
        let case = case(collective.name, &["h1"], 4).with_rows(&[64, 1 << 32], 20);
        let rows = row_fields(&table(&case, options()));
        assert_eq!(rows.len(), 2, "{}", collective.name);
        assert!(rows.iter().all(|fields| fields.len() == 13), "{}: {rows:?}", collective.name);
    }
}
