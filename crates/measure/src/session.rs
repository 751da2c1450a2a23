use std::fs;
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use hpcbench_collectives::{Buffers, Call, Checker, Communicator, buffer_bytes};
use hpcbench_model::{Bytes, DType, Loss, RawSamples, Run};
use hpcbench_store::{RawWriter, RunWriter};
use hpcbench_world::{Anchor, Clock, Failure, World};

use crate::Options;
use crate::accumulate::{Accumulator, MOST_RANKS};
use crate::shared::Shared;

/// What a session starts from.
#[derive(Debug)]
pub struct Setup {
    /// What to measure.
    pub options: Options,
    /// What is known of the run so far, without rows.
    pub run: Run,
    /// The run directory, as rank 0 will name it; looked at on rank 0 only.
    pub dir: PathBuf,
    /// This process's clock.
    pub clock: Clock,
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq)]
pub struct End {
    /// Wrong elements in all checks.
    pub wrong: u64,
    /// What could not be kept.
    pub losses: Vec<Loss>,
}

/// A run being measured, on one rank.
pub struct Session<'w> {
    pub(crate) world: &'w World,
    pub(crate) communicator: Rc<dyn Communicator + 'w>,
    pub(crate) options: Options,
    /// The run as it was before the first row.
    pub(crate) run: Run,
    pub(crate) shared: Arc<Shared>,
    pub(crate) checker: Checker,
    pub(crate) accumulator: Accumulator,
    pub(crate) run_start_ns: u64,
    pub(crate) rows: u32,
    pub(crate) rows_in_all: Option<u64>,
    pub(crate) wrong: u64,
    _heap: Box<[u8]>,
}

impl std::fmt::Debug for Session<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session").field("options", &self.options).finish_non_exhaustive()
    }
}

impl<'w> Session<'w> {
    /// Makes the run directory, of a run that [`check`] has let pass. Collective.
    ///
    /// # Errors
    /// The same on every rank, when any rank cannot write; then nothing is left behind.
    pub fn start(
        world: &'w World,
        communicator: Rc<dyn Communicator + 'w>,
        setup: Setup,
    ) -> Result<Session<'w>, Failure> {
        let Setup { options, mut run, dir, mut clock } = setup;
        share_clock(world, &mut clock);
        let run_start_ns = clock.anchor().ns;
        let dir = world.agree(absolute(&dir))?;
        let writer =
            world.agree(if world.is_first() { create(&dir, &run).map(Some) } else { Ok(None) })?;
        let dir = PathBuf::from(world.broadcast_text(&dir.to_string_lossy()));
        let (mut writer, raw) = raw_file(world, &dir, &run, writer)?;
        run.raw_samples = raw_samples(world, &dir, &run.id);
        if let Some(writer) = &mut writer {
            writer.update(|saved| saved.raw_samples.clone_from(&run.raw_samples));
        }
        Ok(Session {
            world,
            communicator,
            shared: Arc::new(Shared::new(clock, raw, writer)),
            checker: Checker::new(world.rank(), world.size()),
            accumulator: Accumulator::new(world.size()),
            rows_in_all: options.rows(world.size()),
            options,
            run,
            run_start_ns,
            rows: 0,
            wrong: 0,
            _heap: reserve_heap(),
        })
    }

    /// What the threads that may end the run early need.
    pub fn shared(&self) -> Arc<Shared> {
        Arc::clone(&self.shared)
    }

    pub(crate) fn buffers(&self, dtype: DType) -> Result<Buffers, Failure> {
        Buffers::new(
            self.options.largest_buffer(self.world.size()),
            self.options.misalign_bytes(dtype),
        )
    }
}

/// Leaves a hole of 1 MiB in the heap for the small things that rank 0 keeps of each row, and returns
/// the block that holds it open.
///
/// MPI takes temporary buffers of half a message from the same heap and gives them back at each call.
/// A small block that settles in such a gap splits it, and the next call takes another half message:
/// without the hole rank 0 needed 8 MiB more for 16 MiB messages. Memory that is not touched costs
/// nothing.
fn reserve_heap() -> Box<[u8]> {
    const BLOCK_BYTES: usize = 64 << 10;
    // The compiler may leave out memory that is never looked at.
    let blocks: Vec<Vec<u8>> =
        (0..16).map(|_| black_box(Vec::with_capacity(BLOCK_BYTES))).collect();
    let pin = vec![0; 1024].into_boxed_slice();
    drop(blocks);
    pin
}

/// Checks that this world can run what was asked for and has the memory for it. Collective.
///
/// # Errors
/// The same on every rank, when any rank cannot.
pub fn check(
    world: &World,
    communicator: &dyn Communicator,
    options: &Options,
) -> Result<(), Failure> {
    world.agree(refuse(options, world, communicator))?;
    world.agree(fits(options, world))
}

/// Lets ranks that share a clock count from the same moment, so that none of them is early or late by
/// the error of its own conversion.
fn share_clock(world: &World, clock: &mut Clock) {
    let own = clock.start_anchor();
    let mut first = [own.ticks, own.ns];
    world.broadcast_u64s(&mut first);
    if world.one_host() {
        clock.count_from(Anchor { ticks: first[0], ns: first[1] });
    }
}

fn create(dir: &Path, run: &Run) -> Result<RunWriter, Failure> {
    RunWriter::create(dir, run.clone()).map_err(|error| Failure::usage(error.to_string()))
}

/// This rank's raw file beside the run; where any rank has none, all of it is removed again.
fn raw_file(
    world: &World,
    dir: &Path,
    run: &Run,
    writer: Option<RunWriter>,
) -> Result<(Option<RunWriter>, RawWriter), Failure> {
    let (rank, host) = (world.rank() as u32, world.host());
    let file = RawWriter::create(dir, rank, host, run.settings.raw_cap);
    let made = file.as_ref().map(|_| ()).map_err(|error| Failure::usage(error.to_string()));
    match (world.agree(made), file) {
        (Ok(()), Ok(file)) => Ok((writer, file)),
        (agreed, file) => {
            if let Ok(file) = file {
                file.discard(dir);
            }
            world.barrier();
            if let Some(writer) = writer {
                writer.discard();
            }
            Err(agreed.err().unwrap_or_else(|| Failure::cannot_run("a rank has no raw file")))
        }
    }
}

fn absolute(dir: &Path) -> Result<PathBuf, Failure> {
    std::path::absolute(dir).map_err(|error| {
        Failure::usage(format!("--out {}: {error}: name another directory", dir.display()))
    })
}

/// Whether this rank sees the directory that rank 0 made.
fn is_shared(dir: &Path, id: &str) -> bool {
    let text = fs::read(dir.join("run.json")).unwrap_or_default();
    serde_json::from_slice::<Run>(&text).is_ok_and(|run| run.id == id)
}

/// Where each host's raw samples are.
fn raw_samples(world: &World, dir: &Path, id: &str) -> Vec<RawSamples> {
    let shared = is_shared(dir, id);
    let seen = world.all_gather_text(if shared { "shared" } else { "own" });
    let mut hosts: Vec<RawSamples> = Vec::new();
    for (rank, (member, seen)) in world.members().iter().zip(&seen).enumerate() {
        match hosts.iter_mut().find(|entry| entry.host == member.host) {
            Some(entry) => entry.ranks.push(rank as u32),
            None => hosts.push(RawSamples {
                host: member.host.clone(),
                ranks: vec![rank as u32],
                dir: dir.to_string_lossy().into_owned(),
                shared: seen == "shared",
            }),
        }
    }
    hosts
}

/// Why this world or this backend cannot run what was asked for.
fn refuse(
    options: &Options,
    world: &World,
    communicator: &dyn Communicator,
) -> Result<(), Failure> {
    let ranks = world.size();
    if let Some(reason) = (options.collective.refuses)(ranks) {
        return Err(Failure::usage(reason));
    }
    if let Some(&root) = options.roots(ranks).iter().find(|root| **root >= ranks) {
        return Err(Failure::usage(format!(
            "-r {root}: this world has ranks 0 to {}: use one of them, or all",
            ranks - 1
        )));
    }
    if let Some((rank, _)) = options.inject_wrong
        && rank >= ranks
    {
        return Err(Failure::usage(format!(
            "--inject-wrong {rank}: this world has ranks 0 to {}",
            ranks - 1
        )));
    }
    if let Some((_, element)) = options.inject_wrong
        && options
            .dtypes
            .iter()
            .all(|dtype| element >= options.layout(options.sweep.last(), *dtype, ranks).recv)
    {
        return Err(Failure::usage(format!(
            "--inject-wrong: no rank receives an element {element}: choose a lower one, or a larger -e"
        )));
    }
    if ranks > MOST_RANKS {
        return Err(Failure::usage(format!(
            "{ranks} ranks: at most {MOST_RANKS} can be told apart"
        )));
    }
    let largest = options.sweep.last();
    let refusal = options.dtypes.iter().find_map(|dtype| {
        let layout = options.layout(largest, *dtype, ranks);
        communicator.refuses(&Call {
            collective: options.collective,
            dtype: *dtype,
            redop: None,
            root: 0,
            layout,
            in_place: false,
            exchange: options.exchange,
        })
    });
    refusal.map_or(Ok(()), |reason| Err(Failure::usage(reason)))
}

/// Whether the buffers of all ranks of this host fit in its memory.
fn fits(options: &Options, world: &World) -> Result<(), Failure> {
    // So that the sum over ranks cannot wrap.
    let most = u64::MAX / world.size() as u64;
    let own = buffer_bytes(options.largest_buffer(world.size())).min(most);
    let needed = world.sum_on_host(own);
    let available = world.facts().available_bytes;
    if needed <= available {
        return Ok(());
    }
    let ranks = world.local_size();
    let share = available / (2 * ranks as u64);
    let remedy = if share < 1024 {
        "use fewer ranks a host".to_owned()
    } else {
        let fitting = Bytes(1 << share.ilog2()).to_string().replace(' ', "");
        format!("use -e {} or less", fitting.trim_end_matches("iB"))
    };
    Err(Failure::usage(format!(
        "messages of up to {} need {} of buffers for the {ranks} ranks of {}, which has {} free: {remedy}",
        options.sweep.last(),
        gibibytes(needed),
        world.host(),
        gibibytes(available),
    )))
}

fn gibibytes(bytes: u64) -> String {
    format!("{:.1} GiB", bytes as f64 / (1_u64 << 30) as f64)
}
