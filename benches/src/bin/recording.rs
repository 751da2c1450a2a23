//! What recording costs: blocks of an allreduce of 8 bytes with and without it, inside one process
//! a rank. Start it with the launcher: `mpirun -n 2 recording`.

use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use hpcbench_benches::claim::Claim;
use hpcbench_benches::compare::{Side, compare};
use hpcbench_benches::options::PlanOptions;
use hpcbench_benches::progress::Progress as Shown;
use hpcbench_benches::record::{Figure, Paired, Part, Subject};
use hpcbench_collectives::mpi::Mpi;
use hpcbench_collectives::{Buffers, Call, CallError, Communicator, Exchange, Run};
use hpcbench_measure::{BLOCK, Loop, Recorder, Sync, time_block};
use hpcbench_model::{DType, RedOp, collective};
use hpcbench_world::{Clock, Launcher, Progress, World, exit_now};

/// Size of the allreduce, in bytes.
const BYTES: usize = 8;
/// Blocks that are run before the first round, so that MPI has set up what it sets up late.
const WARMUP_BLOCKS: usize = 4;

/// The ratio that is claimed, or else the difference in nanoseconds.
const CLAIM: Claim = Claim::at_most(1.01).or_difference(20.0);

const WHAT: &str = "Time of one iteration of an allreduce of 8 bytes, float, sum, out of place, \
    back to back in blocks of 16,384, on rank 0, in one process a rank. A: the block without \
    recording: the clock is read before and after it. B: the block as hpcbench measures it: the clock \
    is read and the entry and exit of each iteration are recorded. Unit: ns. Ratio: B / A.";

/// Measure what recording every iteration costs: at most 1.01, or 20 ns, claimed
///
/// Exit code: 0 claim shown, 4 broken, 6 not shown, 1 could not run, 2 usage.
#[derive(Debug, Parser)]
#[command(name = "recording", override_usage = "mpirun -n 2 recording [OPTIONS]")]
struct Options {
    /// Directory the figure's file goes to
    #[arg(long, default_value = "results/figures", value_name = "DIR")]
    out: PathBuf,
    #[command(flatten)]
    plan: PlanOptions,
}

/// What rank 0 tells the others to do next.
#[derive(Clone, Copy)]
enum Order {
    Stop,
    Block(Side),
}

impl Order {
    const fn code(self) -> u64 {
        match self {
            Order::Stop => 0,
            Order::Block(Side::A) => 1,
            Order::Block(Side::B) => 2,
        }
    }

    const fn of(code: u64) -> Self {
        match code {
            1 => Order::Block(Side::A),
            2 => Order::Block(Side::B),
            _ => Order::Stop,
        }
    }
}

/// One rank, ready to run blocks.
struct Bench<'a> {
    world: &'a World,
    communicator: &'a Mpi<'a>,
    run: Run<'a>,
    clock: Clock,
    recorder: Recorder,
    progress: Progress,
}

impl Bench<'_> {
    /// Nanoseconds an iteration, on this rank.
    fn block(&mut self, side: Side) -> Result<f64, CallError> {
        self.world.barrier();
        let ticks = match side {
            Side::A => self.plain()?,
            Side::B => self.recorded()?,
        };
        let anchor = self.clock.anchor();
        let to_ns = self.clock.converter(anchor);
        let elapsed_ns = to_ns(anchor.ticks) - to_ns(anchor.ticks - ticks);
        Ok(elapsed_ns as f64 / BLOCK as f64)
    }

    fn plain(&mut self) -> Result<u64, CallError> {
        let start = self.clock.ticks();
        for _ in 0..BLOCK {
            (self.run)()?;
        }
        Ok(self.clock.ticks() - start)
    }

    fn recorded(&mut self) -> Result<u64, CallError> {
        let how = Loop { sync: Sync::None, agg_iters: 1, source: self.clock.source() };
        let Bench { run, communicator, recorder, progress, .. } = self;
        time_block(how, BLOCK, run, *communicator, recorder, progress)
    }

    /// Tells every rank what comes next; ranks other than 0 pass anything and learn it.
    fn agree(&self, order: Order) -> Order {
        let mut code = [order.code()];
        self.world.broadcast_u64s(&mut code);
        Order::of(code[0])
    }

    /// Runs blocks as rank 0 orders them.
    fn follow(&mut self) -> Result<(), CallError> {
        while let Order::Block(side) = self.agree(Order::Stop) {
            self.block(side)?;
        }
        Ok(())
    }
}

fn main() -> ExitCode {
    let options = Options::try_parse().unwrap_or_else(|error| {
        if Launcher::detect().rank == 0 {
            error.exit();
        }
        std::process::exit(error.exit_code());
    });
    run(&options).unwrap_or_else(|error| {
        let message = error.to_string();
        // A rank of a world built for another MPI has none: rank 0 says it for all.
        if !message.is_empty() {
            eprintln!("recording: {message}");
        }
        // Ending MPI would wait for the ranks that wait for this one; the launcher stops those.
        exit_now(1)
    })
}

fn run(options: &Options) -> Result<ExitCode, Box<dyn Error>> {
    let world = World::start().map_err(|failure| failure.message)?;
    let communicator = Mpi::new(&world).map_err(|failure| failure.message)?;
    let mut buffers = Buffers::new(BYTES as u64, 0).map_err(|failure| failure.message)?;
    let call = allreduce(world.size());
    let mut bench = Bench {
        world: &world,
        communicator: &communicator,
        run: communicator.prepare(&call, &mut buffers).map_err(|failure| failure.message)?,
        clock: Clock::start(),
        recorder: Recorder::default(),
        progress: Progress::default(),
    };
    for _ in 0..WARMUP_BLOCKS {
        bench.block(Side::B)?;
    }
    if !world.is_first() {
        bench.follow()?;
        return Ok(ExitCode::SUCCESS);
    }
    let plan = options.plan.plan();
    let mut shown = Shown::new("recording", plan.max_pairs);
    let measure = |side| {
        bench.agree(Order::Block(side));
        bench.block(side)
    };
    let comparison = compare(&plan, measure, |pairs, width| shown.show(pairs, width))?;
    drop(shown);
    bench.agree(Order::Stop);
    let subjects =
        ["without recording", "with recording"].map(|label| Subject::program(label, &[]));
    let name = format!("{BYTES} B, {} ranks", world.size());
    let mut figure = Figure::begin("recording", WHAT, Some(&World::library()));
    let paired = Paired::new(&name, subjects, "ns", Some(CLAIM), &plan, comparison);
    figure.add(Part::Paired(Box::new(paired)));
    eprintln!("written: {}", figure.write(&options.out)?.display());
    Ok(figure.exit_code())
}

fn allreduce(ranks: usize) -> Call {
    let collective = collective::by_name("allreduce").expect("allreduce is a collective");
    let dtype = DType::Float;
    Call {
        collective,
        dtype,
        redop: Some(RedOp::Sum),
        root: 0,
        layout: (collective.layout)(BYTES / dtype.size(), dtype.size(), ranks),
        in_place: false,
        exchange: Exchange::default(),
    }
}
