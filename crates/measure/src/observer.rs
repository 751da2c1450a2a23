use hpcbench_model::{Histogram, Row, Run};

/// A finished row with what its summary leaves out.
#[derive(Clone, Debug)]
pub struct Measured {
    /// The row.
    pub row: Row,
    /// Of each iteration the longest time inside, in nanoseconds.
    pub slowest: Histogram,
    /// The same in order of iteration, in microseconds, where `-I 1` asked for it.
    pub per_iter_us: Option<Vec<f64>>,
}

/// Who looks on, on rank 0: prints rows, draws progress.
pub trait Observer {
    /// Before the first row.
    fn begin(&mut self, run: &Run);
    /// Between blocks: what is being measured, and how many of how many rows are done (`None`: no end).
    fn progress(&mut self, label: &str, done: u64, of: Option<u64>);
    /// Out of place and in place of one size, type, reduction and root.
    fn pair(&mut self, run: &Run, out_of_place: Option<&Measured>, in_place: Option<&Measured>);
    /// After the last row.
    fn end(&mut self, run: &Run);
}

/// Looks away: what ranks other than 0 do.
#[derive(Clone, Copy, Debug)]
pub struct Silent;

impl Observer for Silent {
    fn begin(&mut self, _: &Run) {}
    fn progress(&mut self, _: &str, _: u64, _: Option<u64>) {}
    fn pair(&mut self, _: &Run, _: Option<&Measured>, _: Option<&Measured>) {}
    fn end(&mut self, _: &Run) {}
}
