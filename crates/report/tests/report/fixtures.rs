//! Runs built by hand, and what an exporter makes of them.

use hpcbench_model::*;
use hpcbench_report::{Exporter, RowPair, RowView};
use jiff::{SignedDuration, Timestamp};

/// A run with what its rows only summarise.
pub struct Case {
    pub run: Run,
    pub slowest: Vec<Histogram>,
    pub per_iter_us: Vec<Vec<f64>>,
}

const STARTED: &str = "2026-11-30T09:00:00Z";

/// A whole run of `op` with `ranks` ranks on each of the hosts, and no rows yet.
pub fn case(op: &str, hosts: &[&str], ranks: u32) -> Case {
    let size = hosts.len() as u32 * ranks;
    let rank = |rank: u32| Rank {
        rank,
        local_rank: rank % ranks,
        host: hosts[(rank / ranks) as usize].to_owned(),
        pid: 4100 + rank,
    };
    let host = |name: &&str| Host {
        name: (*name).to_owned(),
        cores: 8,
        kernel: "6.1.0".to_owned(),
        memory_bytes: 32 << 30,
    };
    let run = Run {
        schema: RUN_SCHEMA.to_owned(),
        id: "0c1d".to_owned(),
        tool: Tool {
            name: "hpcbench".to_owned(),
            version: "0.1.0".to_owned(),
            commit: "1a2b3c4".to_owned(),
        },
        command: vec!["hpcbench".to_owned(), op.to_owned()],
        op: op.to_owned(),
        backend: "mpi".to_owned(),
        started: STARTED.to_owned(),
        ended: Some("2026-11-30T09:00:07Z".to_owned()),
        complete: true,
        interrupted: None,
        world: World {
            size,
            launcher: if size == 1 { "none" } else { "Open MPI" }.to_owned(),
            mpi: MpiLibrary {
                library: "Open MPI v4.1.4, package: Debian OpenMPI, ident: 4.1.4".to_owned(),
                standard: "3.1".to_owned(),
            },
            hosts: hosts.iter().map(host).collect(),
            ranks: (0..size).map(rank).collect(),
        },
        clock: Clock {
            source: "tsc".to_owned(),
            resolution_ns: 1.0,
            cost_ns: 21.4,
            scope: if hosts.len() == 1 { ClockScope::World } else { ClockScope::Host },
        },
        settings: settings(),
        raw_samples: Vec::new(),
        losses: Vec::new(),
        findings: Vec::new(),
        rows: Vec::new(),
    };
    Case { run, slowest: Vec::new(), per_iter_us: Vec::new() }
}

fn settings() -> Settings {
    Settings {
        min_bytes: 8,
        max_bytes: 64 << 20,
        step_bytes: None,
        step_factor: Some(4),
        iters: Some(2000),
        agg_iters: 1,
        warmup_iters: 5,
        checks: 1,
        sync: "none".to_owned(),
        average: "avg".to_owned(),
        time_budget_s: None,
        precision: None,
        threshold: None,
        percentiles: vec![50.0, 90.0, 99.0, 99.9],
        seed: 1,
        window: None,
        two_way: false,
        raw_cap: None,
    }
}

impl Case {
    /// Adds both placements (one, where in place has no meaning) of each size, with `iters`
    /// iterations each.
    pub fn with_rows(mut self, sizes: &[u64], iters: u64) -> Self {
        let collective = collective::by_name(&self.run.op).unwrap();
        let placements: &[bool] = match collective.in_place {
            InPlace::Absent => &[false],
            _ => &[false, true],
        };
        for bytes in sizes {
            for in_place in placements {
                self.add_row(*bytes, *in_place, iters);
            }
        }
        self
    }

    fn add_row(&mut self, bytes: u64, in_place: bool, iters: u64) {
        let ranks = self.run.world.size as usize;
        let collective = collective::by_name(&self.run.op).unwrap();
        let layout = (collective.layout)(bytes as usize / 4, 4, ranks);
        let times_ns: Vec<u64> = (0..iters).map(|i| time_ns(bytes, i)).collect();
        let mut slowest = Histogram::new();
        times_ns.iter().for_each(|ns| slowest.record_ns(*ns));
        let mean = slowest.mean_ns().unwrap_or(0.0) / 1e3 * if in_place { 0.9 } else { 0.95 };
        let algbw = (layout.size() * 4) as f64 / (mean * 1e3);
        let factor = (collective.busbw_factor)(ranks);
        let tail_us = |q: f64| slowest.tail_ns(q).map(|ns| ns as f64 / 1e3);
        let bandwidth =
            |q: f64| tail_us(q).map(|us| (layout.size() * 4) as f64 / (us * 1e3) * factor);
        let times = TimesUs {
            mean,
            min: slowest.min_ns().unwrap_or(0) as f64 / 1e3,
            p50: tail_us(0.5),
            p90: tail_us(0.9),
            p99: tail_us(0.99),
            p999: tail_us(0.999),
            max: slowest.max_ns().unwrap_or(0) as f64 / 1e3,
        };
        let checked = !(in_place && collective.in_place == InPlace::Unchecked);
        self.run.rows.push(Row {
            id: self.run.rows.len() as u32,
            cycle: 0,
            op: self.run.op.clone(),
            backend: "mpi".to_owned(),
            dtype: DType::Float,
            redop: collective.reduces.then_some(RedOp::Sum),
            root: collective.rooted.then_some(0),
            bytes: layout.size() as u64 * 4,
            count: layout.param as u64,
            in_place,
            iters,
            blocks: 1,
            time_us: times.clone(),
            inside_us: times,
            algbw_gbps: algbw,
            busbw_gbps: algbw * factor,
            bw_gbps: BandwidthGbps { p1: bandwidth(0.99), p50: bandwidth(0.5) },
            median_interval_us: None,
            wrong: checked.then_some(0),
            first_wrong: None,
            slowest: Vec::new(),
            last_in: Vec::new(),
            skew_us: tail_us(0.5).map(|us| us * 0.8),
            events: None,
            raw_dropped: 0,
        });
        self.slowest.push(slowest);
        self.per_iter_us.push(times_ns.iter().map(|ns| *ns as f64 / 1e3).collect());
    }

    /// What `exporter` writes of the run; with `per_iter`, single iterations are given too.
    pub fn render(&self, exporter: &mut dyn Exporter, per_iter: bool) -> String {
        let mut out = Vec::new();
        let mut start = self.run.clone();
        (start.ended, start.complete, start.interrupted) = (None, false, None);
        start.rows.clear();
        exporter.begin(&start, &mut out).unwrap();
        let views = self.run.rows.iter().enumerate().map(|(i, row)| RowView {
            row,
            slowest: &self.slowest[i],
            per_iter_us: per_iter.then_some(&self.per_iter_us[i]),
        });
        let views: Vec<RowView<'_>> = views.collect();
        let started: Timestamp = STARTED.parse().unwrap();
        for (second, pair) in (0..).zip(views.chunk_by(|_, b| b.row.in_place)) {
            let at = |in_place| pair.iter().copied().find(|view| view.row.in_place == in_place);
            let pair = RowPair {
                out_of_place: at(false),
                in_place: at(true),
                finished: started + SignedDuration::from_secs(second),
            };
            exporter.pair(&self.run, &pair, &mut out).unwrap();
        }
        exporter.end(&self.run, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }
}

/// 2 µs and 0.1 ns a byte, ten steps of 1% by turns, and every 100th iteration five times as long.
fn time_ns(bytes: u64, iteration: u64) -> u64 {
    let base = 2000 + bytes / 10;
    let outlier = if iteration % 100 == 99 { 5 } else { 1 };
    base * (100 + iteration % 10) / 100 * outlier
}

/// A rank's share, by the host it is on.
pub fn share(run: &Run, rank: u32, share: f64) -> Share {
    Share { rank, host: run.world.ranks[rank as usize].host.clone(), share }
}
