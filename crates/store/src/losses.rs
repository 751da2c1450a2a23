//! What was measured but could not be kept: one entry a file and reason.

use std::io;

use hpcbench_model::Loss;

/// Counts `count` more records of `what` as lost, in the entry of that file and reason.
pub(crate) fn add_loss(
    losses: &mut Vec<Loss>,
    what: &str,
    rank: u32,
    count: u64,
    error: &io::Error,
) {
    let why = error.to_string();
    match losses.iter_mut().find(|l| l.what == what && l.rank == rank && l.why == why) {
        Some(loss) => loss.count += count,
        None => losses.push(Loss { what: what.to_owned(), rank, count, why }),
    }
}
