//! Progress on standard error: a bar on a terminal, now and then a line elsewhere.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

/// Time between two lines where there is no terminal.
const LINE_EVERY: Duration = Duration::from_secs(30);

/// Progress of one comparison.
pub struct Progress {
    name: String,
    bar: Option<ProgressBar>,
    last_line: Instant,
}

impl Progress {
    /// Begins to show a comparison of at most `pairs` pairs.
    pub fn new(name: &str, pairs: usize) -> Self {
        let bar = std::io::stderr().is_terminal().then(|| {
            let style = ProgressStyle::with_template("{prefix} {bar:30} {pos}/{len} pairs {msg}")
                .unwrap_or_else(|_| ProgressStyle::default_bar());
            ProgressBar::new(pairs as u64).with_style(style).with_prefix(name.to_owned())
        });
        if bar.is_none() {
            eprintln!("{name}: at most {pairs} pairs");
        }
        Progress { name: name.to_owned(), bar, last_line: Instant::now() }
    }

    /// Shows the pairs so far, and the half-width reached, as a share.
    pub fn show(&mut self, pairs: usize, half_width: Option<f64>) {
        let reached = half_width.map_or(String::new(), |w| format!("±{:.1}%", 100.0 * w));
        if let Some(bar) = &self.bar {
            bar.set_position(pairs as u64);
            bar.set_message(reached);
        } else if self.last_line.elapsed() >= LINE_EVERY {
            eprintln!("{}: {pairs} pairs {reached}", self.name);
            self.last_line = Instant::now();
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
