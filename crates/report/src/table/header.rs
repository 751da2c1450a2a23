//! The lines above the table: what measured what, where, and how.

use std::fmt::Write as _;
use std::io::{self, Write};

use hpcbench_model::{Bytes, Run, Settings, World};

use super::{TableOptions, write_line};
use crate::number::general;

/// Up to so many ranks each has a line of its own; beyond, each host has.
const RANK_LINES: usize = 16;
/// Up to so many hosts each has a line of its own; beyond, all share one.
const HOST_LINES: usize = 32;

pub(super) fn write(run: &Run, options: &TableOptions, out: &mut dyn Write) -> io::Result<()> {
    let mut field = |name: &str, text: &str| write_line(out, &format!("# {name:<10}  {text}"));
    field("hpcbench", &format!("{} ({})", run.tool.version, run.tool.commit))?;
    field("Test", &test(run))?;
    field("MPI", &mpi(&run.world))?;
    let mut names = std::iter::once("Ranks").chain(std::iter::repeat(""));
    for line in ranks(&run.world) {
        field(names.next().unwrap_or_default(), &line)?;
    }
    field("Sizes", &sizes(&run.settings))?;
    field("Iterations", &iterations(&run.settings))?;
    field("Time", &time(run, options))?;
    if let Some(skip) = options.per_iter_skip {
        field("", &per_iter(skip))?;
    }
    if options.wide {
        field("", super::tails::MEANING)?;
    }
    field("Clock", &clock(run))?;
    match &options.run_dir {
        Some(dir) => field("Writing to", dir),
        None => Ok(()),
    }
}

/// `1 row`, `2 rows`.
pub(super) fn counted(count: u64, noun: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {noun}{plural}")
}

fn test(run: &Run) -> String {
    let mut text = format!("{} over {}, buffers in host memory", run.op, run.backend);
    if let Some(window) = run.settings.window {
        let _ = write!(text, ", {} in flight", counted(window, "message"));
    }
    if run.settings.two_way {
        text += ", both ways at once";
    }
    text
}

fn mpi(world: &World) -> String {
    // Open MPI's version text goes on with its package and build date.
    let library = world.mpi.library.split(',').next().unwrap_or_default();
    let library = library.split_whitespace().collect::<Vec<_>>().join(" ");
    let started = match world.launcher.as_str() {
        "none" => "started without a launcher".to_owned(),
        launcher => format!("started by {launcher}"),
    };
    format!("{library} (MPI {}), {started}", world.mpi.standard)
}

fn ranks(world: &World) -> Vec<String> {
    let hosts = world.hosts.len();
    let total = format!("{} on {}", world.size, counted(hosts as u64, "host"));
    let width = world.size.saturating_sub(1).to_string().len();
    if world.ranks.len() <= RANK_LINES {
        let line = |rank: &hpcbench_model::Rank| {
            format!("rank {:>width$} on {}, pid {}", rank.rank, rank.host, rank.pid)
        };
        return std::iter::once(total).chain(world.ranks.iter().map(line)).collect();
    }
    if hosts <= HOST_LINES {
        let lines = world.hosts.iter().map(|host| host_line(world, &host.name));
        return std::iter::once(total).chain(lines).collect();
    }
    vec![total, many_hosts(world)]
}

fn host_line(world: &World, host: &str) -> String {
    let mut ranks: Vec<u32> =
        world.ranks.iter().filter(|rank| rank.host == host).map(|rank| rank.rank).collect();
    ranks.sort_unstable();
    format!("{host}: {}", folded(&ranks))
}

/// Ascending numbers with runs folded: `rank 3`, `ranks 0-7,16-23`.
pub(super) fn folded(numbers: &[u32]) -> String {
    let runs = numbers.chunk_by(|a, b| a + 1 == *b).map(|run| match run {
        [one] => one.to_string(),
        [first, .., last] => format!("{first}-{last}"),
        [] => String::new(),
    });
    let noun = if numbers.len() == 1 { "rank" } else { "ranks" };
    format!("{noun} {}", runs.collect::<Vec<_>>().join(","))
}

fn many_hosts(world: &World) -> String {
    let on = |name: &str| world.ranks.iter().filter(|rank| rank.host == name).count() as u64;
    let counts: Vec<u64> = world.hosts.iter().map(|host| on(&host.name)).collect();
    let (fewest, most) = (counts.iter().min().unwrap_or(&0), counts.iter().max().unwrap_or(&0));
    let each = if fewest == most {
        format!("{} each", counted(*most, "rank"))
    } else {
        format!("{fewest} to {most} ranks each")
    };
    let name = |host: Option<&hpcbench_model::Host>| host.map_or("", |host| &host.name).to_owned();
    format!(
        "hosts {} to {} in order of rank, {each}; run.json lists them",
        name(world.hosts.first()),
        name(world.hosts.last())
    )
}

fn sizes(settings: &Settings) -> String {
    let (min, max) = (Bytes(settings.min_bytes), Bytes(settings.max_bytes));
    match (settings.step_factor, settings.step_bytes) {
        _ if min == max => min.to_string(),
        (Some(factor), _) => format!("{min} up to {max}, each {factor} times the one before"),
        (None, Some(step)) => format!("{min} up to {max}, in steps of {}", Bytes(step)),
        (None, None) => format!("{min} up to {max}"),
    }
}

fn iterations(settings: &Settings) -> String {
    let mut text = match (settings.iters, settings.precision) {
        (Some(iters), _) => format!("{iters} a row"),
        (None, Some(share)) => {
            format!("until the median is known to within {}%", general(share * 100.0))
        }
        (None, None) => "as many as the time allows".to_owned(),
    };
    if let Some(budget) = settings.time_budget_s {
        let _ = write!(text, ", at most {budget} s a row");
    }
    if settings.agg_iters > 1 {
        let _ = write!(text, ", of {} calls each (times are a call's)", settings.agg_iters);
    }
    let _ = write!(text, ", after {} of warm-up; ", settings.warmup_iters);
    text += &match settings.checks {
        0 => "results not checked".to_owned(),
        1 => format!("results checked once (seed {})", settings.seed),
        checks => format!("results checked {checks} times (seed {})", settings.seed),
    };
    text
}

fn time(run: &Run, options: &TableOptions) -> String {
    let ranks = match run.settings.average.as_str() {
        "rank0" => "of rank 0",
        "min" => "of the fastest rank",
        "max" => "of the slowest rank",
        _ => "mean over ranks",
    };
    // What one clock reading covers; every time shown is that divided by the calls or messages in it.
    let part = match (run.op.as_str(), run.settings.window) {
        ("pingpong", None) => "half a round trip: ",
        ("pingpong", Some(_)) => "a window's time / its messages: ",
        _ => "",
    };
    let what = match run.settings.sync.as_str() {
        "barrier" => "mean time inside, a barrier before each iteration (--sync barrier)",
        "barrier-timed" => "elapsed / iterations, with the barrier after each call (-z 1)",
        _ => "elapsed / iterations, back to back (--sync none)",
    };
    let zone = if options.timestamps { "; timestamps are UTC" } else { "" };
    format!("{part}{what}, {ranks}{zone}")
}

fn per_iter(skip: u64) -> String {
    let skipped = match skip {
        0 => String::new(),
        _ => format!(" except the first {skip}"),
    };
    format!("i_*: longest time inside each iteration{skipped}, over all ranks")
}

fn clock(run: &Run) -> String {
    let clock = &run.clock;
    format!(
        "{}, resolution {:.1} ns, {:.0} ns a reading",
        clock.source, clock.resolution_ns, clock.cost_ns
    )
}
