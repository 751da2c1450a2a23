//! What rank 0 shows while it measures: rows on standard output, progress on standard error.

use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::{Path, PathBuf};

use hpcbench_measure::{Measured, Observer};
use hpcbench_model::Run;
use hpcbench_report::{
    Exporter, NcclJson, NcclJsonOptions, RowPair, RowView, TableOptions, average_busbw_gbps,
    enough_busbw,
};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use jiff::Timestamp;

use crate::cli::Format;
use crate::formats::exporter;
use crate::settings::Look;

/// Rank 0's screen and its `-J` file.
pub struct Screen {
    outputs: Vec<Output>,
    bar: ProgressBar,
    min_busbw_gbps: Option<f64>,
    /// Printed above a table.
    note: Option<String>,
    /// Whether the average bandwidth is enough; `None` where nothing was asked or measured.
    pub enough: Option<bool>,
    /// Output that could not be written, in words.
    pub failures: Vec<String>,
}

struct Output {
    name: String,
    /// The file that was made for it.
    file: Option<PathBuf>,
    exporter: Box<dyn Exporter>,
    to: Box<dyn Write>,
    works: bool,
}

impl Screen {
    /// A screen in the asked format, and a file if `-J` was given.
    ///
    /// # Errors
    /// When the `-J` file cannot be made.
    pub fn new(
        look: &Look,
        dir: &Path,
        nccl_json: Option<&Path>,
        note: Option<String>,
    ) -> io::Result<Screen> {
        let table = TableOptions {
            cputime: look.cputime,
            timestamps: look.timestamps,
            per_iter_skip: look.per_iter_skip,
            wide: look.wide,
            min_busbw_gbps: look.min_busbw_gbps,
            run_dir: Some(dir.display().to_string()),
        };
        let mut outputs = vec![Output {
            name: "standard output".to_owned(),
            file: None,
            exporter: exporter(look.format, table),
            to: Box::new(io::stdout()),
            works: true,
        }];
        let mut note = note;
        if look.format != Format::Table
            && let Some(note) = note.take()
        {
            // Standard output is for a program to read.
            let _ = writeln!(io::stderr(), "{note}");
        }
        if let Some(path) = nccl_json {
            let (path, file) = new_file(path)?;
            if look.format == Format::Table {
                let line = format!("# Writing JSON output to {}", path.display());
                note = Some(note.map_or(line.clone(), |note| format!("{note}\n{line}")));
            }
            let options = NcclJsonOptions {
                cputime: look.cputime,
                per_iter_skip: look.per_iter_skip,
                min_busbw_gbps: look.min_busbw_gbps,
            };
            let lossy = |text: std::ffi::OsString| text.to_string_lossy().into_owned();
            let environment = std::env::vars_os().map(|(name, value)| (lossy(name), lossy(value)));
            outputs.push(Output {
                name: path.display().to_string(),
                file: Some(path),
                exporter: Box::new(NcclJson::new(options, environment)),
                to: Box::new(BufWriter::new(file)),
                works: true,
            });
        }
        let bar = progress_bar();
        Ok(Screen {
            outputs,
            bar,
            min_busbw_gbps: look.min_busbw_gbps,
            note,
            enough: None,
            failures: Vec::new(),
        })
    }

    /// Removes the `-J` file again, for a run that does not begin.
    pub fn discard(&mut self) {
        for path in self.outputs.drain(..).filter_map(|output| output.file) {
            let _ = std::fs::remove_file(path);
        }
    }

    /// Writes to every output that still works; one that fails is given up, and said once.
    fn write(&mut self, write: impl Fn(&mut dyn Exporter, &mut dyn Write) -> io::Result<()>) {
        let (outputs, failures) = (&mut self.outputs, &mut self.failures);
        self.bar.suspend(|| {
            for output in outputs.iter_mut().filter(|output| output.works) {
                let written =
                    write(&mut *output.exporter, &mut *output.to).and_then(|()| output.to.flush());
                if let Err(error) = written {
                    output.works = false;
                    // A reader that has seen enough, such as `head`, is no failure.
                    if error.kind() != io::ErrorKind::BrokenPipe {
                        failures.push(format!("{} could not be written: {error}", output.name));
                    }
                }
            }
        });
    }
}

impl Observer for Screen {
    fn begin(&mut self, run: &Run) {
        if let Some(note) = self.note.take() {
            println_quietly(&note);
        }
        self.write(|exporter, out| exporter.begin(run, out));
    }

    fn progress(&mut self, label: &str, done: u64, of: Option<u64>) {
        if let Some(of) = of {
            self.bar.set_length(of);
        }
        self.bar.set_position(done);
        self.bar.set_message(label.to_owned());
    }

    fn pair(&mut self, run: &Run, out_of_place: Option<&Measured>, in_place: Option<&Measured>) {
        let pair = RowPair {
            out_of_place: out_of_place.map(view),
            in_place: in_place.map(view),
            finished: Timestamp::now(),
        };
        self.write(|exporter, out| exporter.pair(run, &pair, out));
    }

    fn end(&mut self, run: &Run) {
        self.bar.finish_and_clear();
        self.enough = enough_busbw(average_busbw_gbps(run), self.min_busbw_gbps);
        self.write(|exporter, out| exporter.end(run, out));
    }
}

fn view(measured: &Measured) -> RowView<'_> {
    RowView {
        row: &measured.row,
        slowest: &measured.slowest,
        per_iter_us: measured.per_iter_us.as_deref(),
    }
}

/// A line that may get lost with the rest of standard output.
fn println_quietly(line: &str) {
    let _ = writeln!(io::stdout(), "{line}");
}

/// A new file of that name, or with `.0`, `.1`, … after it where it exists, as nccl-tests does.
fn new_file(path: &Path) -> io::Result<(PathBuf, File)> {
    let numbered = |n: u32| {
        let mut name = path.as_os_str().to_owned();
        name.push(format!(".{n}"));
        PathBuf::from(name)
    };
    let mut candidates = std::iter::once(path.to_owned()).chain((0..).map(numbered));
    loop {
        let Some(candidate) = candidates.next() else {
            return Err(io::ErrorKind::AlreadyExists.into());
        };
        match File::create_new(&candidate) {
            Ok(file) => return Ok((candidate, file)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
}

fn progress_bar() -> ProgressBar {
    if !io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    // Without colours, so NO_COLOR has nothing to turn off.
    let style = ProgressStyle::with_template("{bar:30} {pos}/{len} rows, {elapsed}, {msg}");
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar
}
