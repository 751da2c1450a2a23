//! The lines below the table: who stood out, what was wrong, what was lost, where it all is.

use std::io::{self, Write};

use hpcbench_model::{ClockScope, Finding, Row, Run, Wrong, collective};

use super::header::counted;
use super::{TableOptions, who, write_line};
use crate::number::general;
use crate::{average_busbw_gbps, enough_busbw, redop_name, wrong_elements};

/// Lines of one kind before the rest is only counted.
const LINES: usize = 8;

pub(super) fn write(run: &Run, options: &TableOptions, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "#")?;
    for line in [precision(run), events(run), waited(run), waited_for(run)].into_iter().flatten() {
        write_line(out, &line)?;
    }
    let wrong = wrong_elements(run);
    write_line(out, &field("Out of bounds values", &format!("{wrong} {}", verdict(wrong == 0))))?;
    write_some(
        out,
        run.rows.iter().filter_map(|row| Some(wrong_line(row, row.first_wrong.as_ref()?))),
    )?;
    write_line(out, &field("Avg bus bandwidth", &average(run, options)))?;
    write_some(out, losses(run))?;
    write_some(out, run.findings.iter().map(finding))?;
    if let Some(line) = early_end(run) {
        write_line(out, &line)?;
    }
    write_some(out, stayed_behind(run))?;
    match &options.run_dir {
        Some(dir) => write_line(out, &field("Run directory", dir)),
        None => Ok(()),
    }
}

/// A line of nccl-tests' footer.
fn field(name: &str, text: &str) -> String {
    format!("# {name:<20} : {text}")
}

fn verdict(fine: bool) -> &'static str {
    if fine { "OK" } else { "FAILED" }
}

fn write_some(out: &mut dyn Write, lines: impl Iterator<Item = String>) -> io::Result<()> {
    let mut lines = lines;
    for line in lines.by_ref().take(LINES) {
        write_line(out, &line)?;
    }
    match lines.count() {
        0 => Ok(()),
        more => write_line(out, &format!("#   and {more} more, in run.json")),
    }
}

fn average(run: &Run, options: &TableOptions) -> String {
    let average = average_busbw_gbps(run);
    let number = average.map_or_else(|| "nan".to_owned(), general);
    match enough_busbw(average, options.min_busbw_gbps) {
        Some(enough) => format!("{number} {}", verdict(enough)),
        None => number,
    }
}

fn events(run: &Run) -> Option<String> {
    let threshold = run.settings.threshold.as_ref()?;
    let events: u64 = run.rows.iter().filter_map(|row| row.events).sum();
    let iterations: u64 = run.rows.iter().map(|row| row.iters).sum();
    Some(field("Jitter events", &format!("{events} of {iterations} iterations past {threshold}")))
}

fn waited(run: &Run) -> Option<String> {
    let text = who::stands_out(&run.world, &run.rows, |row| &row.slowest)?;
    Some(field("Inside longest", &format!("{text} - they waited")))
}

fn waited_for(run: &Run) -> Option<String> {
    if run.clock.scope == ClockScope::Host && run.world.hosts.len() > 1 {
        let why = "not known: the clocks of the hosts cannot be compared";
        return Some(field("Last to enter", why));
    }
    // Elsewhere ranks may lag behind with nobody waiting for them.
    let synchronises = collective::by_name(&run.op).is_some_and(|op| op.synchronises);
    if !synchronises && run.settings.sync == "none" {
        return None;
    }
    let late: Vec<Row> = run.rows.iter().filter(|row| is_late(row)).cloned().collect();
    let text = who::stands_out(&run.world, &late, |row| &row.last_in)?;
    Some(field("Last to enter", &format!("{text} - they were waited for")))
}

/// Share of an iteration's time that lateness must explain before anybody is named: back to back,
/// somebody is always last by what the algorithm itself takes.
const MIN_LATENESS: f64 = 0.5;

/// Whether the time from the first entry to the last is most of what an iteration takes.
fn is_late(row: &Row) -> bool {
    let skew = row.skew_us.unwrap_or(0.0);
    row.bytes > 0 && row.time_us.p50.is_some_and(|time| skew >= MIN_LATENESS * time)
}

/// How many rows came as close as `--precision` asked for.
fn precision(run: &Run) -> Option<String> {
    let asked = run.settings.precision?;
    let reached = |row: &&Row| {
        let half = row.median_interval_us.map(|[low, high]| (high - low) / 2.0);
        half.zip(row.time_us.p50).is_some_and(|(half, median)| half <= asked * median)
    };
    let (count, rows) = (run.rows.iter().filter(reached).count(), run.rows.len());
    let rest = if count < rows { "; the others ended with their time budget" } else { "" };
    let text = format!("the median is known to {}% in {count} of {rows} rows{rest}", asked * 100.0);
    Some(field("Precision", &text))
}

fn wrong_line(row: &Row, wrong: &Wrong) -> String {
    let place = if row.in_place { "in" } else { "out of" };
    format!(
        "#   {} B {} {} {place} place: first at element {} of rank {} on {}: got {}, expected {}",
        row.bytes,
        row.dtype,
        redop_name(row),
        wrong.offset,
        wrong.rank,
        wrong.host,
        wrong.got,
        wrong.expected
    )
}

fn losses(run: &Run) -> impl Iterator<Item = String> {
    let dropped: u64 = run.rows.iter().map(|row| row.raw_dropped).sum();
    let dropped = (dropped > 0).then(|| {
        let text = format!("raw times of {} were not kept on disk", counted(dropped, "iteration"));
        field("Not kept", &text)
    });
    let lost = run.losses.iter().map(|loss| {
        let records = counted(loss.count, "record");
        field("Lost", &format!("{records} of {} (rank {}): {}", loss.what, loss.rank, loss.why))
    });
    dropped.into_iter().chain(lost)
}

fn finding(finding: &Finding) -> String {
    field("Finding", &format!("{}; next: {}", finding.effect.text, finding.next_step))
}

fn early_end(run: &Run) -> Option<String> {
    let rows = counted(run.rows.len() as u64, "row");
    match &run.interrupted {
        Some(signal) => Some(field("Interrupted", &format!("by {signal}, after {rows}"))),
        None if !run.complete => {
            Some(field("Incomplete", &format!("ended after {rows}, more were asked for")))
        }
        None => None,
    }
}

fn stayed_behind(run: &Run) -> impl Iterator<Item = String> {
    run.raw_samples.iter().filter(|raw| !raw.shared).map(|raw| {
        field("Raw times", &format!("those of {} stayed there, in {}", raw.host, raw.dir))
    })
}
