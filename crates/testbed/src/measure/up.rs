use std::time::{Duration, Instant};

use serde::Serialize;

use super::{Machine, Output};
use crate::bed::ScopedBed;
use crate::error::Result;
use crate::names::Prefix;
use crate::spec::{BedSpec, Relays};

/// How `measure up` measures.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct UpMeasurement {
    /// Beds of each size
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    #[command(flatten)]
    output: Output,
}

const METHOD: &str = "Beds of 4 hosts with 2 NICs and of 16 with 4, each without and with a relay \
    on every link, made and removed in turn. up: from the call to the point where all hosts reach \
    each other; down: until no process and no cgroup is left.";

#[derive(Debug, Serialize)]
struct Figures {
    what: &'static str,
    method: &'static str,
    machine: Machine,
    rounds: u32,
    beds: Vec<BedTimes>,
}

#[derive(Debug, Serialize)]
struct BedTimes {
    hosts: usize,
    nics: usize,
    relays: usize,
    up_median_s: f64,
    up_max_s: f64,
    down_median_s: f64,
    down_max_s: f64,
}

pub(super) fn run(prefix: &Prefix, options: &UpMeasurement) -> Result<()> {
    let machine = Machine::this();
    let sizes =
        [(4, 2, Relays::None), (4, 2, Relays::All), (16, 4, Relays::None), (16, 4, Relays::All)];
    let specs = sizes.map(|(hosts, nics, relays)| BedSpec {
        relays,
        ..BedSpec::new(prefix.clone(), hosts, nics)
    });
    let mut times = specs.each_ref().map(|_| (Vec::new(), Vec::new()));
    for _ in 0..options.rounds {
        for (spec, (up, down)) in specs.iter().zip(&mut times) {
            let start = Instant::now();
            let mut bed = ScopedBed::up(spec)?;
            up.push(start.elapsed());
            let start = Instant::now();
            bed.down()?;
            down.push(start.elapsed());
        }
    }
    let beds = specs.iter().zip(times).map(|(spec, (up, down))| bed_times(spec, up, down));
    options.output.write(&Figures {
        what: "time to make and to remove a bed",
        method: METHOD,
        machine,
        rounds: options.rounds,
        beds: beds.collect(),
    })
}

fn bed_times(spec: &BedSpec, up: Vec<Duration>, down: Vec<Duration>) -> BedTimes {
    let ((up_median_s, up_max_s), (down_median_s, down_max_s)) = (middle(up), middle(down));
    let relays = spec.relayed_links().len();
    let (hosts, nics) = (spec.hosts, spec.nics);
    BedTimes { hosts, nics, relays, up_median_s, up_max_s, down_median_s, down_max_s }
}

/// Median (the upper one of an even number) and largest, in seconds to the millisecond.
fn middle(mut times: Vec<Duration>) -> (f64, f64) {
    times.sort_unstable();
    let seconds = |time: Option<&Duration>| time.map_or(0.0, |t| t.as_millis() as f64 / 1000.0);
    (seconds(times.get(times.len() / 2)), seconds(times.last()))
}
