//! What the commands print.

use std::collections::BTreeMap;
use std::io::{self, Write};

use serde::Serialize;

use crate::bed::{HostInfo, Removed};
use crate::error::{Result, Tried};
use crate::injection::FaultStatus;
use crate::names::{Link, Prefix};
use crate::relay::{LaneReport, Quantiles, Report};
use crate::schedule::Schedule;

/// Prints text as it is.
pub(crate) fn print(text: &str) -> Result<()> {
    io::stdout().write_all(text.as_bytes()).tried(|| "write to standard output".to_owned())
}

/// Prints a line.
pub(super) fn line(text: &str) -> Result<()> {
    print(&format!("{text}\n"))
}

fn json(value: &impl Serialize) -> Result<()> {
    line(&serde_json::to_string_pretty(value).tried(|| "write JSON".to_owned())?)
}

/// Prints rows in columns as wide as their widest cell.
fn table(rows: &[Vec<String>]) -> Result<()> {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |at: usize| rows.iter().filter_map(|r| r.get(at)).map(|c| c.chars().count()).max();
    let widths: Vec<usize> = (0..columns).map(|at| width(at).unwrap_or(0)).collect();
    for row in rows {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
        line(cells.collect::<Vec<_>>().join("  ").trim_end())?;
    }
    Ok(())
}

fn head(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

pub(super) fn hosts(hosts: &[HostInfo], as_json: bool) -> Result<()> {
    if as_json {
        return json(&hosts);
    }
    let mut rows =
        vec![head(&["host", "management", "NICs", "monotonic ahead, s", "boottime ahead, s"])];
    let seconds = |ns: u64| format!("{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000);
    for host in hosts {
        let nics: Vec<String> = host.nics.iter().map(ToString::to_string).collect();
        let mut row = vec![host.name.clone(), host.management.to_string(), nics.join(" ")];
        row.extend([seconds(host.clock.monotonic_ns), seconds(host.clock.boottime_ns)]);
        row.extend(host.inventory.iter().map(|root| root.display().to_string()));
        rows.push(row);
    }
    table(&rows)
}

pub(super) fn faults(faults: &[FaultStatus], as_json: bool) -> Result<()> {
    if as_json {
        return json(&faults);
    }
    let mut rows = vec![head(&["id", "fault", "where", "way", "seed", "schedule", "hit of seen"])];
    for FaultStatus { fault, hits } in faults {
        let spec = &fault.spec;
        rows.push(vec![
            fault.id.to_string(),
            spec.kind.to_string(),
            spec.target.to_string(),
            spec.direction.to_string(),
            spec.seed.to_string(),
            spec.schedule.as_ref().map_or("always".to_owned(), schedule),
            hits.map_or("-".to_owned(), |hits| format!("{} of {}", hits.hit, hits.seen)),
        ]);
    }
    table(&rows)
}

fn schedule(schedule: &Schedule) -> String {
    let time = humantime::format_duration;
    let mut text = format!("{} on, {} off", time(schedule.on), time(schedule.off));
    if schedule.random {
        text += " in the mean";
    }
    if !schedule.after.is_zero() {
        text += &format!(", after {}", time(schedule.after));
    }
    text + &schedule.times.map(|times| format!(", {times} times")).unwrap_or_default()
}

pub(super) fn relays(relays: &BTreeMap<Link, Report>, as_json: bool) -> Result<()> {
    if as_json {
        return json(relays);
    }
    let mut rows = vec![head(&[
        "link",
        "way",
        "frames",
        "lost",
        "corrupted",
        "held",
        "overflowed",
        "unsent",
        "passing p50/p99/max, µs",
        "late p50/p99/max, µs",
    ])];
    for (link, report) in relays {
        rows.push(lane(link, "send", &report.send));
        rows.push(lane(link, "receive", &report.receive));
    }
    table(&rows)
}

fn lane(link: &Link, way: &str, lane: &LaneReport) -> Vec<String> {
    let us = |ns: u64| format!("{:.1}", ns as f64 / 1000.0);
    let times = |times: Option<Quantiles>| {
        times.map_or("-".to_owned(), |t| {
            format!("{}/{}/{}", us(t.p50_ns), us(t.p99_ns), us(t.max_ns))
        })
    };
    let counts = [lane.frames, lane.lost, lane.corrupted, lane.held, lane.overflowed, lane.unsent];
    let mut row = vec![link.to_string(), way.to_owned()];
    row.extend(counts.iter().map(ToString::to_string));
    row.extend([times(lane.passing), times(lane.lateness)]);
    row
}

pub(super) fn removed(prefix: &Prefix, removed: Removed) -> Result<()> {
    if removed == Removed::default() {
        return line(&format!("bed `{prefix}`: nothing to remove"));
    }
    let Removed { processes, cgroups, .. } = removed;
    line(&format!("bed `{prefix}`: removed, with {processes} processes and {cgroups} cgroups"))
}
