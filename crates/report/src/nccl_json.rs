use std::io::{self, Write};

use hpcbench_model::{Row, Run, Settings};
use jiff::Timestamp;
use serde::Serialize;

use crate::per_iter::IterStats;
use crate::{
    Exporter, RowPair, RowView, average_busbw_gbps, enough_busbw, redop_name, root_number,
    wrong_elements,
};

/// The document that nccl-tests writes with `-J`, version 3 (2.19, `src/util.cu`): the same keys,
/// nesting and kinds, booleans and roots as strings included.
///
/// What differs, and why:
/// - `env` holds only variables whose names begin with one of [`SAFE_ENV_PREFIXES`] and do not
///   sound like a secret; nccl-tests writes all of them.
/// - `nccl_version` is 0: no NCCL was involved. It stays a number because readers take it apart.
/// - `config.iterations` is 0 where a time budget or a precision decided; each result's
///   `actual_iterations` is what was run, the larger of its placements.
/// - `config.devices` has an entry a rank; `device` is 0, `device_hex` and `device_info` are null
///   on host memory.
/// - `out_of_place` or `in_place` is null where that placement was not measured.
/// - `out_of_place_per_iter` and `in_place_per_iter` lack `per_process_max_times_us`: no process
///   ever holds every rank's times. Those are in the run directory, a file a rank.
/// - Times are UTC; an infinite bandwidth is null.
#[derive(Debug)]
pub struct NcclJson {
    options: NcclJsonOptions,
    env: Vec<String>,
    results: usize,
}

/// What of the command line changes the document.
#[derive(Clone, Debug, Default)]
pub struct NcclJsonOptions {
    /// `-C 1`: the time is called `cpu_time`.
    pub cputime: bool,
    /// `-I 1`, with the number of leading iterations that its figures leave out (`-K`).
    pub per_iter_skip: Option<u64>,
    /// `NCCL_TESTS_MIN_BW`: the average bus bandwidth to judge by, in GB/s.
    pub min_busbw_gbps: Option<f64>,
}

/// How the names of the variables begin that `env` may hold: what tunes NCCL, libfabric, UCX and
/// the MPI libraries, and which job it was.
pub const SAFE_ENV_PREFIXES: [&str; 8] = [
    "NCCL_",
    "FI_",
    "UCX_",
    "OMPI_MCA_",
    "MPICH_",
    "I_MPI_",
    "SLURM_JOB_ID",
    "SLURM_JOB_NUM_NODES",
];

/// What a secret's name contains. `TRANSPORTS` is Open MPI's `orte_precondition_transports`, the
/// key of the job's network; `URI` is where its daemons listen.
const SECRET_WORDS: [&str; 8] =
    ["KEY", "TOKEN", "SECRET", "PASS", "AUTH", "CRED", "TRANSPORTS", "URI"];

fn may_be_shown(name: &str) -> bool {
    let upper = name.to_ascii_uppercase();
    SAFE_ENV_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
        && !SECRET_WORDS.iter().any(|word| upper.contains(word))
}

impl NcclJson {
    /// A writer that shows the harmless part of `env`, given as names and values.
    pub fn new(options: NcclJsonOptions, env: impl IntoIterator<Item = (String, String)>) -> Self {
        let env = env
            .into_iter()
            .filter(|(name, _)| may_be_shown(name))
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        NcclJson { options, env, results: 0 }
    }
}

#[derive(Serialize)]
struct Head<'a> {
    version: u32,
    start_time: String,
    args: &'a [String],
    env: &'a [String],
    nccl_version: u32,
    config: Config<'a>,
}

#[derive(Serialize)]
struct Config<'a> {
    nthreads: u32,
    ngpus: u32,
    minimum_bytes: u64,
    maximum_bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    step_factor: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    step_bytes: Option<u64>,
    warmup_iters: u64,
    iterations: u64,
    aggregated_iterations: u64,
    validation: u64,
    graph: u32,
    blocking_collectives: &'static str,
    per_iter_timing: &'static str,
    per_iter_skip: u64,
    parallel_init: &'static str,
    devices: Vec<Device<'a>>,
}

#[derive(Serialize)]
struct Device<'a> {
    rank: u32,
    group: u32,
    pid: u32,
    hostname: &'a str,
    device: u32,
    device_hex: Option<&'a str>,
    device_info: Option<&'a str>,
}

#[derive(Serialize)]
struct ResultLine<'a> {
    size: u64,
    count: u64,
    #[serde(rename = "type")]
    dtype: &'static str,
    redop: &'static str,
    root: String,
    out_of_place: Option<Figures>,
    #[serde(skip_serializing_if = "Option::is_none")]
    out_of_place_per_iter: Option<PerIter<'a>>,
    in_place: Option<Figures>,
    #[serde(skip_serializing_if = "Option::is_none")]
    in_place_per_iter: Option<PerIter<'a>>,
    actual_iterations: u64,
    experiment_name: &'static str,
}

#[derive(Serialize)]
struct Figures {
    #[serde(skip_serializing_if = "Option::is_none")]
    time: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cpu_time: Option<f64>,
    alg_bw: f64,
    bus_bw: f64,
    nwrong: Option<f64>,
}

#[derive(Serialize)]
struct PerIter<'a> {
    #[serde(flatten)]
    stats: IterStats,
    times_us: &'a [f64],
}

#[derive(Serialize)]
struct Foot {
    out_of_bounds: OutOfBounds,
    average_bus_bandwidth: AverageBusBandwidth,
    errors: Vec<String>,
    end_time: Option<String>,
}

#[derive(Serialize)]
struct OutOfBounds {
    count: u64,
    okay: &'static str,
}

#[derive(Serialize)]
struct AverageBusBandwidth {
    bandwidth: NumberOrNan,
    okay: &'static str,
}

/// nccl-tests writes no number as the text `nan`.
#[derive(Serialize)]
#[serde(untagged)]
enum NumberOrNan {
    Number(f64),
    Nan(&'static str),
}

fn boolean(value: bool) -> &'static str {
    if value { "true" } else { "false" }
}

/// nccl-tests' form of a time; what is no RFC 3339 stays as it is.
fn nccl_time(rfc3339: &str) -> String {
    rfc3339.parse::<Timestamp>().map_or_else(|_| rfc3339.to_owned(), crate::table::nccl_timestamp)
}

impl NcclJson {
    fn config<'a>(&self, run: &'a Run) -> Config<'a> {
        let Settings { min_bytes, max_bytes, step_bytes, step_factor, .. } = run.settings;
        let device = |rank: &'a hpcbench_model::Rank| Device {
            rank: rank.rank,
            group: 0,
            pid: rank.pid,
            hostname: &rank.host,
            device: 0,
            device_hex: None,
            device_info: None,
        };
        Config {
            nthreads: 1,
            ngpus: 1,
            minimum_bytes: min_bytes,
            maximum_bytes: max_bytes,
            step_factor,
            step_bytes,
            warmup_iters: run.settings.warmup_iters,
            iterations: run.settings.iters.unwrap_or(0),
            aggregated_iterations: run.settings.agg_iters,
            validation: run.settings.checks,
            graph: 0,
            blocking_collectives: boolean(run.settings.sync != "none"),
            per_iter_timing: boolean(self.options.per_iter_skip.is_some()),
            per_iter_skip: self.options.per_iter_skip.unwrap_or(0),
            parallel_init: boolean(false),
            devices: run.world.ranks.iter().map(device).collect(),
        }
    }

    fn figures(&self, row: &Row) -> Figures {
        let time = Some(row.time_us.mean);
        Figures {
            time: time.filter(|_| !self.options.cputime),
            cpu_time: time.filter(|_| self.options.cputime),
            alg_bw: row.algbw_gbps,
            bus_bw: row.busbw_gbps,
            nwrong: row.wrong.map(|wrong| wrong as f64),
        }
    }

    fn per_iter<'a>(&self, view: Option<RowView<'a>>) -> Option<PerIter<'a>> {
        let times_us = view?.per_iter_us?;
        let stats = IterStats::of(times_us, self.options.per_iter_skip?)?;
        Some(PerIter { stats, times_us })
    }
}

impl Exporter for NcclJson {
    fn begin(&mut self, run: &Run, out: &mut dyn Write) -> io::Result<()> {
        let head = Head {
            version: 3,
            start_time: nccl_time(&run.started),
            args: &run.command,
            env: &self.env,
            nccl_version: 0,
            config: self.config(run),
        };
        write!(out, "{},\n\"results\":[", open_object(&head)?)
    }

    fn pair(&mut self, _run: &Run, pair: &RowPair<'_>, out: &mut dyn Write) -> io::Result<()> {
        let Some(RowView { row, .. }) = pair.views().next() else { return Ok(()) };
        let line = ResultLine {
            size: row.bytes,
            count: row.count,
            dtype: row.dtype.name(),
            redop: redop_name(row),
            root: format!("{:6}", root_number(row)),
            out_of_place: pair.out_of_place.map(|view| self.figures(view.row)),
            out_of_place_per_iter: self.per_iter(pair.out_of_place),
            in_place: pair.in_place.map(|view| self.figures(view.row)),
            in_place_per_iter: self.per_iter(pair.in_place),
            actual_iterations: pair.views().map(|view| view.row.iters).max().unwrap_or(0),
            experiment_name: "",
        };
        out.write_all(if self.results == 0 { b"\n" } else { b",\n" })?;
        self.results += 1;
        Ok(serde_json::to_writer(out, &line)?)
    }

    fn end(&mut self, run: &Run, out: &mut dyn Write) -> io::Result<()> {
        let wrong = wrong_elements(run);
        let average = average_busbw_gbps(run);
        let foot = Foot {
            out_of_bounds: OutOfBounds { count: wrong, okay: boolean(wrong == 0) },
            average_bus_bandwidth: AverageBusBandwidth {
                bandwidth: average.map_or(NumberOrNan::Nan("nan"), NumberOrNan::Number),
                okay: enough_busbw(average, self.options.min_busbw_gbps)
                    .map_or("unchecked", boolean),
            },
            errors: errors(run),
            end_time: run.ended.as_deref().map(nccl_time),
        };
        let foot = serde_json::to_string(&foot)?;
        writeln!(out, "],\n{}", foot.trim_start_matches('{'))
    }
}

/// An object's text without its closing brace, for more keys to follow.
fn open_object(value: &impl Serialize) -> io::Result<String> {
    let mut text = serde_json::to_string(value)?;
    text.pop();
    Ok(text)
}

/// What ended the run early, and what is wrong with it.
fn errors(run: &Run) -> Vec<String> {
    let interrupted = run.interrupted.iter().map(|signal| format!("interrupted by {signal}"));
    interrupted.chain(run.findings.iter().map(|finding| finding.effect.text.clone())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_harmless_variables_are_shown() {
        for (name, shown) in [
            ("NCCL_DEBUG", true),
            ("FI_PROVIDER", true),
            ("OMPI_MCA_pml", true),
            ("SLURM_JOB_ID", true),
            ("HOME", false),
            ("AWS_SECRET_ACCESS_KEY", false),
            ("NCCL_API_TOKEN", false),
            ("UCX_auth_file", false),
            ("MY_NCCL_DEBUG", false),
            ("OMPI_MCA_orte_precondition_transports", false),
            ("OMPI_MCA_orte_hnp_uri", false),
        ] {
            assert_eq!(may_be_shown(name), shown, "{name}");
        }
    }
}
