//! From the command line to typed options: defaults, and what cannot be.

use std::time::Duration;

use hpcbench_collectives::Exchange;
use hpcbench_measure::{Average, Iterations, Options as Measured, Placement, Roots, Sync};
use hpcbench_model::{Bytes, DType, RedOp, Settings, Step, Sweep, collective};
use hpcbench_world::{Failure, Limits};

use crate::cli::{Format, GpuOnly, Measure, Options, Pingpong, PlacementArgument, SyncArgument};

/// The built-in sweep: sizes, and the time for one placement of a row.
const BUILT_IN: (Bytes, Bytes, u64) = (Bytes(8), Bytes(64 << 20), 4);
const BUILT_IN_BUDGET: Duration = Duration::from_millis(500);
const BUILT_IN_WARMUP: u64 = 5;
/// nccl-tests' defaults (2.19): 32 MiB, a step of 1 MiB, 20 iterations, 1 of warm-up.
const NCCL_TESTS_BYTES: Bytes = Bytes(32 << 20);
const NCCL_TESTS_STEP: Bytes = Bytes(1 << 20);
const NCCL_TESTS_ITERS: u64 = 20;
const NCCL_TESTS_WARMUP: u64 = 1;
/// Longest time for a row of which only the precision was given.
const PRECISION_BUDGET: Duration = Duration::from_secs(30);

/// Everything that the command line decides.
pub struct Decided {
    /// What to measure.
    pub options: Measured,
    /// The same, as `run.json` keeps it.
    pub settings: Settings,
    /// When the watchdog acts.
    pub limits: Limits,
    /// Whether the built-in sweep runs.
    pub built_in: bool,
    /// The table, as the user wants it.
    pub look: Look,
}

/// What changes the printed output.
pub struct Look {
    /// Format.
    pub format: Format,
    /// `--wide`.
    pub wide: bool,
    /// `-C 1`.
    pub cputime: bool,
    /// `-S 1`.
    pub timestamps: bool,
    /// `-I 1`, with `-K`.
    pub per_iter_skip: Option<u64>,
    /// `NCCL_TESTS_MIN_BW`.
    pub min_busbw_gbps: Option<f64>,
}

/// Types and checks a command line.
///
/// # Errors
/// What is wrong and what to type instead.
pub fn decide(measure: &Measure) -> Result<Decided, Failure> {
    let (name, o, pingpong) = measure.parts();
    let collective =
        collective::by_name(name).ok_or_else(|| Failure::usage(format!("no collective {name}")))?;
    refuse_gpu_only(&o.gpu_only)?;
    refuse_environment()?;
    let built_in = [o.min_bytes, o.max_bytes, o.step_bytes].iter().all(Option::is_none)
        && o.step_factor.is_none()
        && o.iters.is_none();
    let sweep = sweep(o, built_in)?;
    let iterations = iterations(o, built_in)?;
    let default_warmup = if built_in { BUILT_IN_WARMUP } else { NCCL_TESTS_WARMUP };
    let switch = |option: &str, value: u64| match value {
        0 | 1 => Ok(value == 1),
        _ => Err(Failure::usage(format!("{option} {value}: write 0 or 1"))),
    };
    let per_iteration = switch("-I", o.per_iter)?;
    refuse_pointless(o, per_iteration)?;
    let options = Measured {
        collective,
        exchange: exchange(pingpong),
        sweep,
        skip_empty: built_in,
        dtypes: all_or_one(&o.dtype, &DType::ALL).map_err(|e| Failure::usage(format!("-d {e}")))?,
        redops: redops(&o.redop)?,
        roots: roots(&o.root)?,
        placement: match o.placement {
            PlacementArgument::Both => Placement::Both,
            PlacementArgument::Out => Placement::Out,
            PlacementArgument::In => Placement::In,
        },
        cycles: o.cycles,
        iterations,
        agg_iters: at_least_one("-m", o.agg_iters)?,
        warmup_iters: at_most("-w", o.warmup_iters.unwrap_or(default_warmup))?,
        checks: at_most("-c", o.checks)?,
        sync: sync(o)?,
        average: average(o.average)?,
        threshold: o.threshold,
        misalign: usize::try_from(o.unalign).ok().filter(|u| *u <= 1 << 20).ok_or_else(|| {
            Failure::usage(format!(
                "-u {}: write a number of elements up to {}",
                o.unalign,
                1 << 20
            ))
        })?,
        seed: o.seed,
        inject_wrong: o.inject_wrong.as_deref().map(inject_wrong).transpose()?,
        per_iteration,
    };
    if options.placement == Placement::In && collective.in_place == hpcbench_model::InPlace::Absent
    {
        return Err(Failure::usage(format!(
            "{name} has no in-place form: leave --placement in out"
        )));
    }
    if let Some(dir) = o.out.as_ref().filter(|dir| dir.to_str().is_none()) {
        return Err(Failure::usage(format!("--out {}: name a directory in UTF-8", dir.display())));
    }
    Ok(Decided {
        settings: settings(o, &options)?,
        limits: limits(o)?,
        built_in,
        look: Look {
            format: o.format,
            wide: o.wide,
            cputime: switch("-C", o.cputime)?,
            timestamps: switch("-S", o.timestamps)?,
            per_iter_skip: per_iteration.then_some(o.per_iter_skip),
            min_busbw_gbps: min_busbw()?,
        },
        options,
    })
}

fn sweep(o: &Options, built_in: bool) -> Result<Sweep, Failure> {
    let (min, max, step) = if built_in {
        (BUILT_IN.0, BUILT_IN.1, Step::Factor(BUILT_IN.2))
    } else {
        let step = o
            .step_factor
            .map_or(Step::Bytes(o.step_bytes.unwrap_or(NCCL_TESTS_STEP)), Step::Factor);
        (o.min_bytes.unwrap_or(NCCL_TESTS_BYTES), o.max_bytes.unwrap_or(NCCL_TESTS_BYTES), step)
    };
    let hint = match (o.min_bytes, o.max_bytes) {
        (None, Some(_)) => {
            format!(" (without -b the first size is {NCCL_TESTS_BYTES}, as in nccl-tests)")
        }
        (Some(_), None) => {
            format!(" (without -e the last size is {NCCL_TESTS_BYTES}, as in nccl-tests)")
        }
        _ => String::new(),
    };
    Sweep::new(min, max, step).map_err(|error| Failure::usage(format!("{error}{hint}")))
}

fn iterations(o: &Options, built_in: bool) -> Result<Iterations, Failure> {
    let budget =
        o.time_budget.as_deref().map(|text| duration("--time-budget", text)).transpose()?;
    let precision = o.precision.as_deref().map(percent).transpose()?;
    if let Some(iters) = o.iters {
        if budget.is_some() || precision.is_some() {
            return Err(Failure::usage(
                "-n sets the number of iterations, --time-budget and --precision find it: give one or the other",
            ));
        }
        return at_least_one("-n", iters).map(Iterations::Fixed);
    }
    let default_budget = match (precision, built_in) {
        (Some(_), _) => Some(PRECISION_BUDGET),
        (None, true) => Some(BUILT_IN_BUDGET),
        (None, false) => None,
    };
    Ok(match budget.or(default_budget) {
        Some(budget) if budget.is_zero() => {
            return Err(Failure::usage(
                "--time-budget 0: write how long each row may take, such as 30s",
            ));
        }
        Some(budget) => Iterations::Timed { budget, precision },
        None => Iterations::Fixed(NCCL_TESTS_ITERS),
    })
}

fn exchange(pingpong: Option<&Pingpong>) -> Exchange {
    pingpong.map_or_else(Exchange::default, |p| Exchange { window: p.window, two_way: p.two_way })
}

fn redops(text: &str) -> Result<Vec<RedOp>, Failure> {
    if text == "mulsum" {
        return Err(Failure::usage(
            "-o mulsum: a reduction of NCCL's own that MPI does not have; use -o sum",
        ));
    }
    all_or_one(text, &RedOp::ALL).map_err(|error| Failure::usage(format!("-o {error}")))
}

fn all_or_one<T: Copy + std::str::FromStr>(text: &str, all: &[T]) -> Result<Vec<T>, T::Err> {
    if text == "all" { Ok(all.to_vec()) } else { text.parse().map(|one| vec![one]) }
}

fn roots(text: &str) -> Result<Roots, Failure> {
    // nccl-tests runs every root for -1.
    if text == "all" || text == "-1" {
        return Ok(Roots::All);
    }
    text.parse()
        .map(Roots::One)
        .map_err(|_| Failure::usage(format!("-r {text}: write a rank such as 0, or all")))
}

fn sync(o: &Options) -> Result<Sync, Failure> {
    let blocking = match o.blocking {
        0 | 2 => None,
        1 => Some(Sync::BarrierTimed),
        3 => Some(Sync::Barrier),
        other => return Err(Failure::usage(format!("-z {other}: write 0, 1, 2 or 3"))),
    };
    let asked = o.sync.map(|sync| match sync {
        SyncArgument::None => Sync::None,
        SyncArgument::Barrier => Sync::Barrier,
    });
    match (blocking, asked) {
        (Some(blocking), Some(asked)) if blocking != asked => Err(Failure::usage(format!(
            "-z {} and --sync {} contradict each other: give one of them",
            o.blocking,
            asked.name()
        ))),
        _ => Ok(asked.or(blocking).unwrap_or_default()),
    }
}

fn average(number: u64) -> Result<Average, Failure> {
    Ok(match number {
        0 => Average::Rank0,
        1 => Average::Mean,
        2 => Average::Min,
        3 => Average::Max,
        _ => {
            return Err(Failure::usage(format!(
                "-a {number}: write 0 (rank 0), 1 (mean), 2 (min) or 3 (max)"
            )));
        }
    })
}

/// Largest number of iterations, calls or checks: far beyond use, and safe to multiply.
const MOST: u64 = 1 << 30;

fn at_least_one(option: &str, number: u64) -> Result<u64, Failure> {
    if number == 0 {
        return Err(Failure::usage(format!("{option} 0 measures nothing: write 1 or more")));
    }
    at_most(option, number)
}

fn at_most(option: &str, number: u64) -> Result<u64, Failure> {
    if number <= MOST {
        Ok(number)
    } else {
        Err(Failure::usage(format!(
            "{option} {number}: write at most {MOST}, or run longer with -N"
        )))
    }
}

fn inject_wrong(text: &str) -> Result<(usize, usize), Failure> {
    text.split_once(':')
        .and_then(|(rank, element)| Some((rank.parse().ok()?, element.parse().ok()?)))
        .ok_or_else(|| {
            Failure::usage(format!("--inject-wrong {text}: write RANK:ELEMENT, such as 1:100"))
        })
}

const TIME_UNITS: [(&str, f64); 4] = [("ms", 1e-3), ("s", 1.0), ("m", 60.0), ("h", 3600.0)];

/// `500ms`, `30s`, `2m`, `1h`; a bare number is seconds.
fn duration(option: &str, text: &str) -> Result<Duration, Failure> {
    let (number, scale) = TIME_UNITS
        .iter()
        .find_map(|(unit, scale)| Some((text.strip_suffix(unit)?, *scale)))
        .unwrap_or((text, 1.0));
    let seconds = number.trim().parse::<f64>().ok().map(|n| n * scale);
    seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()).ok_or_else(|| {
        Failure::usage(format!("{option} {text}: write a time such as 500ms, 30s or 2m"))
    })
}

/// `1%`, as a share.
fn percent(text: &str) -> Result<f64, Failure> {
    let number = text.trim().strip_suffix('%').unwrap_or(text).trim().parse::<f64>().ok();
    number
        .filter(|percent| *percent > 0.0 && *percent < 100.0)
        .map(|percent| percent / 100.0)
        .ok_or_else(|| Failure::usage(format!("--precision {text}: write a percentage such as 1%")))
}

fn limits(o: &Options) -> Result<Limits, Failure> {
    let stall = duration("--stall-timeout", &o.stall_timeout)?;
    Ok(Limits {
        stall: (!stall.is_zero()).then_some(stall),
        total: (o.timeout > 0).then(|| Duration::from_secs(o.timeout)),
    })
}

fn settings(o: &Options, options: &Measured) -> Result<Settings, Failure> {
    if let Some(wrong) = o.percentiles.iter().find(|p| !(**p > 0.0 && **p < 100.0)) {
        return Err(Failure::usage(format!(
            "--percentiles {wrong}: write numbers between 0 and 100, such as 50,99.9"
        )));
    }
    let (iters, budget, precision) = match options.iterations {
        Iterations::Fixed(iters) => (Some(iters), None, None),
        Iterations::Timed { budget, precision } => (None, Some(budget.as_secs_f64()), precision),
    };
    let (step_bytes, step_factor) = match options.sweep.step() {
        Step::Bytes(bytes) => (Some(bytes.0), None),
        Step::Factor(factor) => (None, Some(factor)),
    };
    Ok(Settings {
        min_bytes: options.sweep.min().0,
        max_bytes: options.sweep.max().0,
        step_bytes,
        step_factor,
        iters,
        agg_iters: options.agg_iters,
        warmup_iters: options.warmup_iters,
        checks: options.checks,
        sync: options.sync.name().to_owned(),
        average: options.average.name().to_owned(),
        time_budget_s: budget,
        precision,
        threshold: options.threshold.map(|threshold| threshold.to_string()),
        percentiles: o.percentiles.clone(),
        seed: options.seed,
        window: options.exchange.window.map(u64::from),
        two_way: options.exchange.two_way,
        raw_cap: o.raw_cap,
    })
}

/// Options that would change nothing.
fn refuse_pointless(o: &Options, per_iteration: bool) -> Result<(), Failure> {
    let usage = |text: String| Err(Failure::usage(text));
    if o.per_iter_skip > 0 && !per_iteration {
        return usage(format!(
            "-K {}: it skips iterations of -I's columns: add -I 1",
            o.per_iter_skip
        ));
    }
    if o.iters.is_some_and(|iters| o.per_iter_skip >= iters) {
        return usage(format!("-K {} leaves none of -n's iterations: skip fewer", o.per_iter_skip));
    }
    let table_only = [("--wide", o.wide), ("-S 1", o.timestamps == 1)];
    if o.inject_wrong.is_some() && o.checks == 0 {
        return usage("--inject-wrong needs a check: leave -c 0 out".to_owned());
    }
    match table_only.iter().find(|(_, given)| *given && o.format != Format::Table) {
        Some((option, _)) => {
            usage(format!("{option} changes the table only: leave it or --format out"))
        }
        None => Ok(()),
    }
}

/// Options of nccl-tests' that need GPUs: harmless at their defaults, refused otherwise.
fn refuse_gpu_only(o: &GpuOnly) -> Result<(), Failure> {
    let host_memory = "there is no GPU in this measurement: leave it out";
    let refusals = [
        (
            o.threads != 1,
            "-t",
            "every rank is one process: start more ranks with mpirun -n instead",
        ),
        (o.gpus != 1, "-g", "every rank has one device: start more ranks with mpirun -n instead"),
        (o.parallel_init != 0, "-p", "there are no NCCL communicators to initialise: leave it out"),
        (o.stream_null != 0, "-y", host_memory),
        (o.cuda_graph != 0, "-G", host_memory),
        (o.local_register != 0, "-R", host_memory),
        (o.cta_policy.is_some_and(|policy| policy >= 0), "-x", host_memory),
        (o.device_implementation != 0, "-D", host_memory),
        (
            o.device_cta_count.is_some(),
            "-V",
            "no GPU kernels run here: leave it out (the version is --version)",
        ),
        (
            o.memory != 0,
            "-M",
            "it reports GPU memory, and there is none in this measurement: leave it out",
        ),
    ];
    match refusals.iter().find(|(refused, ..)| *refused) {
        Some((_, option, reason)) => {
            Err(Failure::usage(format!("{option} cannot apply over MPI on host memory: {reason}")))
        }
        None => Ok(()),
    }
}

/// nccl-tests' variables that would change what is measured.
fn refuse_environment() -> Result<(), Failure> {
    let names = ["NCCL_TESTS_SPLIT", "NCCL_TESTS_SPLIT_MASK", "NCCL_TESTS_DEVICE"];
    match names.iter().find(|name| std::env::var_os(name).is_some()) {
        Some(name) => Err(Failure::usage(format!(
            "{name} is set, and cannot apply over MPI on host memory: unset it"
        ))),
        None => Ok(()),
    }
}

fn min_busbw() -> Result<Option<f64>, Failure> {
    let text = std::env::var_os("NCCL_TESTS_MIN_BW").filter(|text| !text.is_empty());
    let Some(text) = text else { return Ok(None) };
    let number =
        text.to_str().and_then(|text| text.trim().parse::<f64>().ok()).filter(|n| n.is_finite());
    number.map(Some).ok_or_else(|| {
        Failure::usage(format!(
            "NCCL_TESTS_MIN_BW={}: set it to a bandwidth in GB/s",
            text.to_string_lossy()
        ))
    })
}
