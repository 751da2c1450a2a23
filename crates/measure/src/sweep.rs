use hpcbench_collectives::{Buffers, Call, CallError, Checked, Run as Calls};
use hpcbench_model::{Bytes, DType, InPlace, RedOp};
use hpcbench_store::Interval;
use hpcbench_world::{Anchor, Failure, Phase};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

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
        let layout = self.options.layout(size, dtype, self.world.size());
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
        let (pace, interval) = self.time(cell, id, buffers, observer)?;
        progress.enter(Phase::Check, &cell.label);
        let checked = self.check(cell.call, u64::from(id), buffers)?;
        progress.enter(Phase::Gather, &cell.label);
        let wrong = self.wrong_elements(checked);
        Ok(self.collect(cell, id, &pace, wrong, interval))
    }

    /// Warm-up and timed blocks, all ranks in step; also says when the blocks were.
    fn time(
        &mut self,
        cell: &Cell<'_>,
        id: u32,
        buffers: &mut Buffers,
        observer: &mut dyn Observer,
    ) -> Result<(Pace, Interval), Failure> {
        let world = self.world;
        let shared = Arc::clone(&self.shared);
        let reading = self.reading(cell.call);
        self.accumulator.begin_row(reading.common_clock, self.options.per_iteration);
        {
            let mut raw = exclusive(&shared.raw);
            (raw.row, raw.first_iteration) = (id, 0);
        }
        let communicator = Rc::clone(&self.communicator);
        let mut calls = communicator.prepare(cell.call, buffers)?;
        shared.progress.enter(Phase::WarmUp, &cell.label);
        let mut pace = Pace::new(self.options.iterations, self.warm_up(&mut calls)?);
        let started_ns = shared.clock.anchor().ns;
        loop {
            let count = if world.is_first() { pace.next() } else { 0 };
            let (count, reference_ns) = self.agree_on_block(count);
            if count == 0 {
                let ended_ns = shared.clock.anchor().ns;
                let start = Duration::from_nanos(started_ns.saturating_sub(self.run_start_ns));
                let duration = Duration::from_nanos(ended_ns - started_ns);
                return Ok((pace, Interval { start, duration }));
            }
            observer.progress(&cell.label, u64::from(id), self.rows_in_all);
            shared.progress.enter(Phase::Timed, &cell.label);
            world.barrier();
            let elapsed = self.block(count, &mut calls)?;
            shared.progress.enter(Phase::Gather, &cell.label);
            let first_iteration = self.accumulator.iterations;
            let median =
                self.drain(id, elapsed, Reading { reference_ns, first_iteration, ..reading });
            if let Some(median) = median {
                pace.finished(count, median);
            }
        }
    }

    /// How the times of a call are to be read.
    fn reading(&self, call: &Call) -> Reading {
        Reading {
            messages: self.messages(call),
            reference_ns: 0,
            common_clock: self.world.one_host(),
            idle: self.is_idle(),
            first_iteration: 0,
        }
    }

    /// Calls and messages of one iteration.
    pub(crate) fn messages(&self, call: &Call) -> u64 {
        call.messages() * self.options.agg_iters
    }

    /// Whether this rank only watches.
    pub(crate) fn is_idle(&self) -> bool {
        (self.options.collective.idle)(self.world.rank(), self.world.size())
    }

    /// Runs the warm-up and returns what an iteration took; `None` without one.
    fn warm_up(&self, calls: &mut Calls<'_>) -> Result<Option<Duration>, Failure> {
        let iterations = self.options.warmup_iters;
        let started = Instant::now();
        for _ in 0..iterations * self.options.agg_iters {
            calls().map_err(|error| lone(&error))?;
            self.shared.progress.step();
        }
        Ok((iterations > 0).then(|| started.elapsed() / iterations as u32))
    }

    /// Rank 0's number of iterations, and the moment from which entries are counted, on every rank;
    /// where ranks share a clock, also what its readings are converted with.
    fn agree_on_block(&self, count: usize) -> (usize, u64) {
        let own = self.shared.clock.anchor();
        let reference_ns = own.ns.saturating_sub(REFERENCE_BEFORE_NS);
        let mut block = [count as u64, reference_ns, own.ticks, own.ns];
        self.world.broadcast_u64s(&mut block);
        let [count, reference_ns, ticks, ns] = block;
        let first = Anchor { ticks, ns };
        exclusive(&self.shared.raw).anchor = if self.world.one_host() { first } else { own };
        (count as usize, reference_ns)
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
        self.accumulator.elapsed_ns += shared.clock.elapsed_ns(elapsed) as f64;
        let rank = self.world.rank();
        let accumulator = &mut self.accumulator;
        let (dropped, ()) =
            shared.drain_block(|entries, exits| accumulator.take(rank, reading, entries, exits));
        accumulator.raw_dropped += dropped;
        let median = accumulator.join(self.world, reading)?;
        if let Some(threshold) = self.options.threshold {
            let events = accumulator.events(self.world, reading, threshold, row, self.run_start_ns);
            if let Some(writer) = exclusive(&shared.writer).as_mut() {
                events.iter().for_each(|event| writer.event(event));
            }
        }
        Some(median)
    }

    /// The checked runs of a row, each with data of its own: what this rank found, and how many
    /// elements were wrong on all ranks. `None` where nothing is checked.
    fn check(
        &mut self,
        call: &Call,
        row: u64,
        buffers: &mut Buffers,
    ) -> Result<Option<(Checked, u64)>, Failure> {
        let unchecked = call.in_place && call.collective.in_place == InPlace::Unchecked;
        if self.options.checks == 0 || unchecked {
            return Ok(None);
        }
        let output_at = self.communicator.output_at(call);
        for check in 0..self.options.checks {
            self.shared.progress.step();
            let number = row.wrapping_mul(self.options.checks).wrapping_add(check);
            let seed = self.options.seed.wrapping_add(number).wrapping_add(1);
            self.checker.fill(call, seed, buffers);
            self.communicator.prepare(call, buffers)?().map_err(|error| lone(&error))?;
            if let Some((rank, element)) = self.options.inject_wrong
                && rank == self.world.rank()
            {
                self.checker.corrupt(call, element, buffers);
            }
            let checked = self.checker.check(call, seed, output_at, buffers);
            let wrong = self.world.all_sum(checked.wrong);
            // As nccl-tests: the first check that fails anywhere is the last.
            if wrong > 0 {
                return Ok(Some((checked, wrong)));
            }
        }
        Ok(Some((Checked::default(), 0)))
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
