use crate::RowView;
use crate::number::{fitted, general};
use crate::per_iter::IterStats;
use crate::table::TableOptions;

/// A column of one placement.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Figure {
    Time,
    AlgBw,
    BusBw,
    Wrong,
    IterMin,
    IterMax,
    IterP99,
    IterCv,
    /// That percentile of the longest time inside each iteration.
    Tail(f64),
    /// The largest of them.
    Max,
    /// Bus bandwidth at the 99th percentile of time.
    BusBwP1,
}

/// The columns of one placement, from left to right.
pub(super) fn columns(options: &TableOptions, percentiles: &[f64]) -> Vec<Figure> {
    let mut figures = vec![Figure::Time, Figure::AlgBw, Figure::BusBw, Figure::Wrong];
    if options.per_iter_skip.is_some() {
        figures.extend([Figure::IterMin, Figure::IterMax, Figure::IterP99, Figure::IterCv]);
    }
    if options.wide {
        figures.extend(tails(percentiles));
    }
    figures
}

/// The columns that tell of tails.
pub(super) fn tails(percentiles: &[f64]) -> impl Iterator<Item = Figure> {
    percentiles.iter().map(|p| Figure::Tail(*p)).chain([Figure::Max, Figure::BusBwP1])
}

impl Figure {
    pub(super) fn name(&self, cputime: bool) -> String {
        match self {
            Figure::Time if cputime => "cputime".to_owned(),
            Figure::Time => "time".to_owned(),
            Figure::AlgBw => "algbw".to_owned(),
            Figure::BusBw => "busbw".to_owned(),
            Figure::Wrong => "#wrong".to_owned(),
            Figure::IterMin => "i_min".to_owned(),
            Figure::IterMax => "i_max".to_owned(),
            Figure::IterP99 => "i_p99".to_owned(),
            Figure::IterCv => "i_cv%".to_owned(),
            Figure::Tail(percentile) => format!("p{percentile}"),
            Figure::Max => "max".to_owned(),
            Figure::BusBwP1 => "bw_p1".to_owned(),
        }
    }

    pub(super) const fn unit(&self) -> &'static str {
        match self {
            Figure::AlgBw | Figure::BusBw | Figure::BusBwP1 => "(GB/s)",
            Figure::Wrong => "",
            Figure::IterCv => "(%)",
            _ => "(us)",
        }
    }

    /// Characters of a cell; of nccl-tests' columns, as there.
    pub(super) const fn width(&self) -> usize {
        match self {
            Figure::AlgBw | Figure::BusBw | Figure::Wrong | Figure::BusBwP1 => 6,
            _ => 7,
        }
    }

    /// The cell; `-` where there are too few samples for it.
    pub(super) fn cell(&self, view: &RowView<'_>, stats: Option<&IterStats>) -> String {
        let us = |ns: u64| ns as f64 / 1e3;
        let value = match self {
            Figure::Wrong => {
                let wrong = view.row.wrong.map(|wrong| general(wrong as f64));
                return wrong.unwrap_or_else(|| "N/A".to_owned());
            }
            Figure::Time => Some(view.row.time_us.mean),
            Figure::AlgBw => Some(view.row.algbw_gbps),
            Figure::BusBw => Some(view.row.busbw_gbps),
            Figure::IterMin => stats.map(|stats| stats.min),
            Figure::IterMax => stats.map(|stats| stats.max),
            Figure::IterP99 => stats.and_then(IterStats::p99_if_enough),
            Figure::IterCv => stats.map(|stats| stats.cv_percent),
            Figure::Tail(percentile) => view.slowest.tail_ns(percentile / 100.0).map(us),
            Figure::Max => view.slowest.max_ns().map(us),
            Figure::BusBwP1 => view.row.bw_gbps.p1,
        };
        value.map_or_else(|| "-".to_owned(), |value| fitted(value, self.width()))
    }
}
