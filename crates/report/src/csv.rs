use std::io::{self, Write};

use hpcbench_model::{Row, Run, Share, Wrong};

use crate::{Exporter, RowPair, redop_name, root_number};

/// Comma-separated values (RFC 4180): a line of column names, then one line a row and placement.
///
/// The columns are `run`, `ranks`, `hosts` and then [`Row`]'s fields by their names, nested ones
/// joined by `_`; the two shares give their first entry only. A cell is empty where `run.json` has
/// `null`, but `redop` and `root` say `none` and `-1` as the table does. New columns come at the
/// end; none is renamed or moved within a [`hpcbench_model::RUN_SCHEMA`].
#[derive(Debug, Default)]
pub struct Csv;

type Cell = fn(&Run, &Row) -> String;

/// Columns, in order.
const COLUMNS: &[(&str, Cell)] = &[
    ("run", |run, _| run.id.clone()),
    ("ranks", |run, _| run.world.size.to_string()),
    ("hosts", |run, _| run.world.hosts.len().to_string()),
    ("id", |_, row| row.id.to_string()),
    ("cycle", |_, row| row.cycle.to_string()),
    ("op", |_, row| row.op.clone()),
    ("backend", |_, row| row.backend.clone()),
    ("dtype", |_, row| row.dtype.to_string()),
    ("redop", |_, row| redop_name(row).to_owned()),
    ("root", |_, row| root_number(row).to_string()),
    ("bytes", |_, row| row.bytes.to_string()),
    ("count", |_, row| row.count.to_string()),
    ("in_place", |_, row| row.in_place.to_string()),
    ("iters", |_, row| row.iters.to_string()),
    ("blocks", |_, row| row.blocks.to_string()),
    ("time_us_mean", |_, row| row.time_us.mean.to_string()),
    ("time_us_min", |_, row| row.time_us.min.to_string()),
    ("time_us_p50", |_, row| optional(&row.time_us.p50)),
    ("time_us_p90", |_, row| optional(&row.time_us.p90)),
    ("time_us_p99", |_, row| optional(&row.time_us.p99)),
    ("time_us_p999", |_, row| optional(&row.time_us.p999)),
    ("time_us_max", |_, row| row.time_us.max.to_string()),
    ("inside_us_mean", |_, row| row.inside_us.mean.to_string()),
    ("inside_us_min", |_, row| row.inside_us.min.to_string()),
    ("inside_us_p50", |_, row| optional(&row.inside_us.p50)),
    ("inside_us_p90", |_, row| optional(&row.inside_us.p90)),
    ("inside_us_p99", |_, row| optional(&row.inside_us.p99)),
    ("inside_us_p999", |_, row| optional(&row.inside_us.p999)),
    ("inside_us_max", |_, row| row.inside_us.max.to_string()),
    ("algbw_gbps", |_, row| row.algbw_gbps.to_string()),
    ("busbw_gbps", |_, row| row.busbw_gbps.to_string()),
    ("bw_gbps_p1", |_, row| optional(&row.bw_gbps.p1)),
    ("bw_gbps_p50", |_, row| optional(&row.bw_gbps.p50)),
    ("median_interval_us_low", |_, row| optional(&row.median_interval_us.map(|i| i[0]))),
    ("median_interval_us_high", |_, row| optional(&row.median_interval_us.map(|i| i[1]))),
    ("wrong", |_, row| optional(&row.wrong)),
    ("first_wrong_rank", |_, row| wrong(row, |w| w.rank.to_string())),
    ("first_wrong_host", |_, row| wrong(row, |w| w.host.clone())),
    ("first_wrong_offset", |_, row| wrong(row, |w| w.offset.to_string())),
    ("first_wrong_got", |_, row| wrong(row, |w| w.got.clone())),
    ("first_wrong_expected", |_, row| wrong(row, |w| w.expected.clone())),
    ("slowest_rank", |_, row| first(&row.slowest, |s| s.rank.to_string())),
    ("slowest_host", |_, row| first(&row.slowest, |s| s.host.clone())),
    ("slowest_share", |_, row| first(&row.slowest, |s| s.share.to_string())),
    ("last_in_rank", |_, row| first(&row.last_in, |s| s.rank.to_string())),
    ("last_in_host", |_, row| first(&row.last_in, |s| s.host.clone())),
    ("last_in_share", |_, row| first(&row.last_in, |s| s.share.to_string())),
    ("events", |_, row| optional(&row.events)),
    ("raw_dropped", |_, row| row.raw_dropped.to_string()),
];

fn optional<T: ToString>(value: &Option<T>) -> String {
    value.as_ref().map(T::to_string).unwrap_or_default()
}

fn wrong(row: &Row, field: fn(&Wrong) -> String) -> String {
    row.first_wrong.as_ref().map(field).unwrap_or_default()
}

fn first(shares: &[Share], field: fn(&Share) -> String) -> String {
    shares.first().map(field).unwrap_or_default()
}

fn write_record(cells: impl Iterator<Item = String>, out: &mut dyn Write) -> io::Result<()> {
    let mut writer = csv::Writer::from_writer(out);
    writer.write_record(cells.map(String::into_bytes))?;
    writer.flush()
}

impl Exporter for Csv {
    fn begin(&mut self, _run: &Run, out: &mut dyn Write) -> io::Result<()> {
        write_record(COLUMNS.iter().map(|(name, _)| (*name).to_owned()), out)
    }

    fn pair(&mut self, run: &Run, pair: &RowPair<'_>, out: &mut dyn Write) -> io::Result<()> {
        pair.views().try_for_each(|view| {
            write_record(COLUMNS.iter().map(|(_, cell)| cell(run, view.row)), out)
        })
    }

    fn end(&mut self, _run: &Run, _out: &mut dyn Write) -> io::Result<()> {
        Ok(())
    }
}
