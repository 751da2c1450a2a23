//! Bringing a measured row together on rank 0, and writing it.

use std::sync::Arc;

use hpcbench_collectives::Checked;
use hpcbench_model::{Histogram, Row, Wrong};
use hpcbench_store::{HistogramKey, HistogramKind, Interval};

use crate::accumulate::Ends;
use crate::observer::Measured;
use crate::pace::Pace;
use crate::row::{gbps, shares, tails_gbps, times_us};
use crate::session::Session;
use crate::shared::exclusive;
use crate::sweep::Cell;

impl Session<'_> {
    /// Wrong elements of all ranks, and the first one of the lowest rank that has any.
    pub(crate) fn wrong_elements(
        &mut self,
        checked: Option<(Checked, u64)>,
    ) -> Option<(u64, Option<Wrong>)> {
        let (checked, wrong) = checked?;
        self.wrong += wrong;
        if wrong == 0 {
            return Some((0, None));
        }
        let text = checked.first.map(|(at, got, expected)| format!("{at} {got} {expected}"));
        let texts = self.world.all_gather_text(&text.unwrap_or_default());
        let first = texts.iter().enumerate().find_map(|(rank, text)| {
            let mut words = text.split(' ');
            Some(Wrong {
                offset: words.next()?.parse().ok()?,
                got: words.next()?.to_owned(),
                expected: words.next()?.to_owned(),
                rank: rank as u32,
                host: self.world.member(rank).host.clone(),
            })
        });
        Some((wrong, first))
    }

    /// Brings all ranks' histograms together and writes the row; on rank 0 returns it.
    pub(crate) fn collect(
        &mut self,
        cell: &Cell<'_>,
        id: u32,
        pace: &Pace,
        wrong: Option<(u64, Option<Wrong>)>,
        interval: Interval,
    ) -> Option<Measured> {
        let world = self.world;
        let mean = self.accumulator.elapsed_ns / self.accumulator.iterations as f64;
        let means = world.gather_f64(if self.is_idle() { f64::NAN } else { mean });
        self.accumulator.raw_dropped += self.shared.sync_raw();
        let raw_dropped = world.all_sum(self.accumulator.raw_dropped);
        let inside_ends = self.accumulator.inside_ends.of_all(world);
        let shared = Arc::clone(&self.shared);
        let mut inside = Histogram::new();
        let encoded = self.accumulator.inside.encode();
        world.stream_to_first(&encoded, |rank, bytes| {
            let key =
                HistogramKey { row: id, kind: HistogramKind::Inside, rank: Some(rank as u32) };
            if let Ok(largest) = inside.merge_encoded(bytes)
                && let Some(writer) = exclusive(&shared.writer).as_mut()
            {
                writer.histogram(key, bytes, interval, largest.unwrap_or(0));
            }
        });
        let means = means?;
        let messages = self.messages(cell.call) as f64;
        let mean_us = self.options.average.of(&means) / messages / 1e3;
        let row = self.summary(cell, id, pace, mean_us, (&inside, inside_ends), wrong, raw_dropped);
        let all = &mut self.accumulator.all;
        let key = HistogramKey { row: id, kind: HistogramKind::Slowest, rank: None };
        if let Some(writer) = exclusive(&shared.writer).as_mut() {
            writer.histogram(
                key,
                &all.slowest.encode(),
                interval,
                all.slowest.max_ns().unwrap_or(0),
            );
            writer.finish_row(row.clone());
        }
        Some(Measured { row, slowest: all.slowest.clone(), per_iter_us: all.per_iter_us.take() })
    }

    #[expect(clippy::too_many_arguments, reason = "everything that a row is made of, once")]
    fn summary(
        &self,
        cell: &Cell<'_>,
        id: u32,
        pace: &Pace,
        mean_us: f64,
        (inside, inside_ends): (&Histogram, Ends),
        wrong: Option<(u64, Option<Wrong>)>,
        raw_dropped: u64,
    ) -> Row {
        let Cell { call, cycle, bytes, .. } = cell;
        let ranks = self.world.size();
        let all = &self.accumulator.all;
        let alg_bytes = call.algbw_bytes(ranks);
        let factor = (call.collective.busbw_factor)(ranks);
        let time_us = times_us(&all.slowest, mean_us, all.slowest_ends);
        let (wrong, first_wrong) =
            wrong.map_or((None, None), |(count, first)| (Some(count), first));
        Row {
            id,
            cycle: *cycle,
            op: call.collective.name.to_owned(),
            backend: self.communicator.name().to_owned(),
            dtype: call.dtype,
            redop: call.redop,
            root: call.collective.rooted.then_some(call.root as u32),
            bytes: *bytes,
            count: call.layout.param as u64,
            in_place: call.in_place,
            iters: self.accumulator.iterations,
            blocks: pace.blocks(),
            inside_us: times_us(inside, inside.mean_ns().unwrap_or(0.0) / 1e3, inside_ends),
            algbw_gbps: gbps(alg_bytes, mean_us),
            busbw_gbps: gbps(alg_bytes * factor, mean_us),
            bw_gbps: tails_gbps(alg_bytes * factor, &time_us),
            time_us,
            median_interval_us: pace.interval_ns().map(|interval| interval.map(|ns| ns / 1e3)),
            wrong,
            first_wrong,
            slowest: shares(&all.slow_counts, self.world),
            last_in: shares(&all.late_counts, self.world),
            skew_us: all.skew.quantile_ns(0.5).map(|ns| ns as f64 / 1e3),
            events: self.options.threshold.map(|_| all.events),
            raw_dropped,
        }
    }
}
