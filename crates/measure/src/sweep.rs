use hpcbench_collectives::{Buffers, Call, CallError, Checked, Run as Calls};
use hpcbench_model::{Bytes, DType, InPlace, RedOp};
use hpcbench_store::Interval;
use hpcbench_world::{Failure, Phase};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use crate::accumulate::Reading;
use crate::block::{Loop, time_block};
use crate::observer::{Measured, Observer};
use crate::pace::Pace;
use crate::session::{End, Session};
use crate::shared::{exclusive, now};

/// How long before a block rank 0 puts the reference that entries are counted from: a second, far
/// more than ranks of one host can be apart after a barrier.
const REFERENCE_BEFORE_NS: u64 = 1_000_000_000;

/// One row to measure.
pub(crate) struct Cell<'a> {
    pub(crate) call: &'a Call,
    pub(crate) cycle: u64,
    pub(crate) bytes: u64,
    pub(crate) label: String,
}

/// Measures everything the options ask for. Collective.
///
/// # Errors
/// When a library call fails or memory cannot be had; then on this rank alone, and the others may
/// wait for it: end the process.
pub fn sweep(session: &mut Session<'_>, observer: &mut dyn Observer) -> Result<End, Failure> {
    let ranks = session.world.size();
    let options = session.options.clone();
    observer.begin(&session.run);
    let roots = options.roots(ranks);
    for &dtype in &options.dtypes {
        let mut buffers = session.buffers(dtype)?;
        for redop in options.redops() {
            for &root in &roots {
                session.cycles(dtype, redop, root, &mut buffers, observer)?;
            }
        }
    }
    session.finish(observer)
}

impl Session<'_> {
    fn cycles(
        &mut self,
        dtype: DType,
        redop: Option<RedOp>,
        root: usize,
        buffers: &mut Buffers,
        observer: &mut dyn Observer,
    ) -> Result<(), Failure> {
        let mut cycle = 0;
        while self.options.cycles == 0 || cycle < self.options.cycles {
            for size in self.options.sweep.sizes() {
                self.pair(cycle, size, dtype, redop, root, buffers, observer)?;
            }
            cycle += 1;
        }
        Ok(())
    }

    /// Both placements of one size.
    #[expect(clippy::too_many_arguments, reason = "what names a row of the table")]
    fn pair(
        &mut self,
        cycle: u64,
        size: Bytes,
        dtype: DType,
        redop: Option<RedOp>,
        root: usize,
        buffers: &mut Buffers,
        observer: &mut dyn Observer,
    ) -> Result<(), Failure> {
        let collective = self.options.collective;
        let layout =
            (collective.layout)(size.0 as usize / dtype.size(), dtype.size(), self.world.size());
        if self.options.skip_empty && layout.size() == 0 {
            return Ok(());
        }
        let mut measured = [None, None];
        let placements: Vec<bool> = self.options.placements().collect();
        for in_place in placements {
            let exchange = self.options.exchange;
            let call = Call { collective, dtype, redop, root, layout, in_place, exchange };
            let bytes = (layout.size() * dtype.size()) as u64;
            let operation = redop.map_or(String::new(), |op| format!(" {op}"));
            let place = if in_place { "in place" } else { "out of place" };
            let label = format!("{} {dtype}{operation} {} {place}", collective.name, Bytes(bytes));
            let cell = Cell { call: &call, cycle, bytes, label };
            measured[usize::from(in_place)] = self.row(&cell, buffers, observer)?;
        }
        if self.world.is_first() {
            let [out, inside] = &measured;
            observer.pair(&self.run, out.as_ref(), inside.as_ref());
        }
        Ok(())
    }

    /// One row: data in, warm-up, timed blocks, checks; on rank 0 the row.
    fn row(
        &mut self,
        cell: &Cell<'_>,
        buffers: &mut Buffers,
        observer: &mut dyn Observer,
    ) -> Result<Option<Measured>, Failure> {
        let id = self.rows;
        self.rows += 1;
        let progress = Arc::clone(&self.shared.progress);
        progress.enter(Phase::Check, &cell.label);
        self.checker.fill(cell.call, self.options.seed, buffers);
        let started_ns = self.shared.clock.anchor().ns;
        let pace = self.time(cell, id, buffers, observer)?;
        let ended_ns = self.shared.clock.anchor().ns;
        progress.enter(Phase::Check, &cell.label);
        let checked = self.check(cell.call, u64::from(id), buffers)?;
        progress.enter(Phase::Gather, &cell.label);
        let wrong = self.wrong_elements(&checked);
        let interval = Interval {
            start: Duration::from_nanos(started_ns.saturating_sub(self.run_start_ns)),
            duration: Duration::from_nanos(ended_ns - started_ns),
        };
        Ok(self.collect(cell, id, &pace, wrong, interval))
    }

    /// Warm-up and timed blocks, all ranks in step.
    fn time(
        &mut self,
        cell: &Cell<'_>,
        id: u32,
        buffers: &mut Buffers,
        observer: &mut dyn Observer,
    ) -> Result<Pace, Failure> {
        let world = self.world;
        let shared = Arc::clone(&self.shared);
        let idle = (self.options.collective.idle)(world.rank(), world.size());
        let reading = Reading {
            messages: cell.call.messages() * self.options.agg_iters,
            reference_ns: 0,
            common_clock: world.one_host(),
            idle,
        };
        self.accumulator.begin_row(world.size(), reading.common_clock, self.options.per_iteration);
        {
            let mut raw = exclusive(&shared.raw);
            (raw.row, raw.first_iteration) = (id, 0);
        }
        let communicator = Rc::clone(&self.communicator);
        let mut calls = communicator.prepare(cell.call, buffers)?;
        shared.progress.enter(Phase::WarmUp, &cell.label);
        let warm = self.options.warmup_iters * self.options.agg_iters;
        (0..warm).try_for_each(|_| calls()).map_err(|error| lone(&error))?;
        let mut pace = Pace::new(self.options.iterations);
        loop {
            let reference_ns = shared.clock.anchor().ns.saturating_sub(REFERENCE_BEFORE_NS);
            let mut next = [if world.is_first() { pace.next() as u64 } else { 0 }, reference_ns];
            world.broadcast_u64s(&mut next);
            let count = next[0] as usize;
            if count == 0 {
                return Ok(pace);
            }
            observer.progress(&cell.label, u64::from(id), self.rows_in_all());
            shared.progress.enter(Phase::Timed, &cell.label);
            world.barrier();
            let elapsed = self.block(count, &mut calls)?;
            shared.progress.enter(Phase::Gather, &cell.label);
            let reading = Reading { reference_ns: next[1], ..reading };
            let median = self.drain(id, elapsed, reading);
            pace.finished(count, median.unwrap_or(0.0));
        }
    }

    fn block(&self, count: usize, calls: &mut Calls<'_>) -> Result<u64, Failure> {
        let shared = &self.shared;
        let how = Loop {
            sync: self.options.sync,
            agg_iters: self.options.agg_iters,
            source: shared.clock.source(),
        };
        time_block(how, count, calls, &*self.communicator, &shared.recorder, &shared.progress)
            .map_err(|error| lone(&error))
    }

    /// Takes a finished block out of the recorder and joins it with the other ranks'.
    fn drain(&mut self, row: u32, elapsed: u64, reading: Reading) -> Option<f64> {
        let shared = Arc::clone(&self.shared);
        let first = self.accumulator.iterations;
        let anchor = shared.clock.anchor();
        let to_ns = shared.clock.converter(anchor);
        self.accumulator.elapsed_ns += (to_ns(anchor.ticks) - to_ns(anchor.ticks - elapsed)) as f64;
        let rank = self.world.rank();
        let accumulator = &mut self.accumulator;
        let (dropped, ()) =
            shared.drain_block(|entries, exits| accumulator.take(rank, reading, entries, exits));
        accumulator.raw_dropped += dropped;
        let median = accumulator.join(self.world, reading)?;
        if let Some(threshold) = self.options.threshold {
            let events =
                accumulator.events(self.world, reading, threshold, row, first, self.run_start_ns);
            if let Some(writer) = exclusive(&shared.writer).as_mut() {
                events.iter().for_each(|event| writer.event(event));
            }
        }
        Some(median)
    }

    /// The checked runs of a row, each with data of its own.
    fn check(
        &mut self,
        call: &Call,
        row: u64,
        buffers: &mut Buffers,
    ) -> Result<Option<Checked>, Failure> {
        if self.options.checks == 0
            || (call.in_place && call.collective.in_place == InPlace::Unchecked)
        {
            return Ok(None);
        }
        let output_at = self.communicator.output_at(call);
        for check in 0..self.options.checks {
            let seed = self.options.seed.wrapping_add(1 + row * self.options.checks + check);
            self.checker.fill(call, seed, buffers);
            self.communicator.prepare(call, buffers)?().map_err(|error| lone(&error))?;
            if let Some((rank, element)) = self.options.inject_wrong
                && rank == self.world.rank()
            {
                self.checker.corrupt(call, element, buffers);
            }
            let checked = self.checker.check(call, seed, output_at, buffers);
            // As nccl-tests: the first check that fails anywhere is the last.
            if self.world.all_sum(checked.wrong) > 0 {
                return Ok(Some(checked));
            }
        }
        Ok(Some(Checked::default()))
    }

    /// Rows of the whole run; `None` where it has no end.
    fn rows_in_all(&self) -> Option<u64> {
        let o = &self.options;
        let lines = o.sweep.sizes().count()
            * o.dtypes.len()
            * o.redops().len()
            * o.roots(self.world.size()).len();
        (o.cycles > 0).then(|| lines as u64 * o.cycles * o.placements().count() as u64)
    }

    /// Ends the run: every rank's losses come together, and the run is complete.
    fn finish(&mut self, observer: &mut dyn Observer) -> Result<End, Failure> {
        self.shared.progress.enter(Phase::End, "");
        let own = serde_json::to_string(&self.shared.raw_losses()).unwrap_or_default();
        let texts = self.world.all_gather_text(&own);
        let raw_losses =
            texts.iter().flat_map(|text| serde_json::from_str::<Vec<_>>(text).unwrap_or_default());
        let finished = exclusive(&self.shared.writer).as_mut().map(|writer| {
            writer.update(|run| run.losses.extend(raw_losses));
            writer.finish(now(), true);
            writer.run().clone()
        });
        // Printed with the lock given back: a signal must still find it free.
        let losses = finished.map_or_else(Vec::new, |run| {
            observer.end(&run);
            run.losses
        });
        Ok(End { wrong: self.wrong, losses })
    }
}

/// A call that failed on this rank, perhaps on this one alone.
fn lone(error: &CallError) -> Failure {
    Failure::cannot_run(error.to_string())
}
