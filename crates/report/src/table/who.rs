//! Who waited, and who was waited for: two answers that must never be taken for each other.

use std::collections::BTreeMap;

use hpcbench_model::{Bytes, Row, Share, World};

use super::header::folded;

/// Names shown in one answer.
const NAMES: usize = 2;
/// Share of the rows in which a place must stand out: a row's iterations are not independent, so
/// one row alone says little where there are others.
const MIN_ROWS: f64 = 0.25;
/// Fewer iterations than these are chance.
const MIN_ITERATIONS: f64 = 10.0;
/// A smaller share of the iterations explains little of them.
const MIN_SHARE: f64 = 0.1;
/// How many times the even odds the odds must be.
const MIN_ODDS_RATIO: f64 = 3.0;
/// Standard deviations that the share must lie above an even one: chance hardly reaches this,
/// however many ranks and rows there are.
const MIN_DEVIATIONS: f64 = 5.0;

/// A place that stands out in some rows.
#[derive(Default)]
struct Standout {
    rows: u64,
    share: f64,
    bytes: u64,
}

/// Ranks, or where no single rank stands out, hosts that have far more than their even share of a
/// row's iterations; `None` where nobody does.
pub(super) fn stands_out(
    world: &World,
    rows: &[Row],
    shares: fn(&Row) -> &[Share],
) -> Option<String> {
    let by_rank = |share: &Share| format!("rank {} on {}", share.rank, share.host);
    let one = |_: &Share| 1;
    let by_host = |share: &Share| format!("{} ({})", share.host, folded(&ranks_of(world, share)));
    let all = |share: &Share| ranks_of(world, share).len();
    collect(world, rows, shares, by_rank, one)
        .or_else(|| collect(world, rows, shares, by_host, all))
}

fn ranks_of(world: &World, share: &Share) -> Vec<u32> {
    world.ranks.iter().filter(|rank| rank.host == share.host).map(|rank| rank.rank).collect()
}

fn collect(
    world: &World,
    rows: &[Row],
    shares: fn(&Row) -> &[Share],
    name: impl Fn(&Share) -> String,
    members: impl Fn(&Share) -> usize,
) -> Option<String> {
    let mut found: BTreeMap<String, Standout> = BTreeMap::new();
    let told = rows.iter().filter(|row| !shares(row).is_empty()).count() as u64;
    for row in rows.iter().filter(|row| row.bytes > 0) {
        let mut places: BTreeMap<String, (f64, usize)> = BTreeMap::new();
        for share in shares(row) {
            places.entry(name(share)).or_insert_with(|| (0.0, members(share))).0 += share.share;
        }
        for (place, (share, members)) in places {
            if !is_informative(share, members as f64 / f64::from(world.size), row.iters) {
                continue;
            }
            let standout = found.entry(place).or_default();
            standout.rows += 1;
            if share > standout.share {
                (standout.share, standout.bytes) = (share, row.bytes);
            }
        }
    }
    describe(found, told)
}

/// Whether a share of `iterations` says more than that somebody has to be first.
fn is_informative(share: f64, even: f64, iterations: u64) -> bool {
    if even >= 1.0 {
        return false;
    }
    let n = iterations as f64;
    let odds = |p: f64| p / (1.0 - p);
    let deviation = (even * (1.0 - even) / n).sqrt();
    share * n >= MIN_ITERATIONS
        && share >= MIN_SHARE
        && odds(share) >= MIN_ODDS_RATIO * odds(even)
        && share >= even + MIN_DEVIATIONS * deviation
}

fn describe(found: BTreeMap<String, Standout>, told: u64) -> Option<String> {
    let often = |at: &Standout| at.rows as f64 >= MIN_ROWS * told as f64;
    let mut places: Vec<_> = found.into_iter().filter(|(_, at)| often(at)).collect();
    places.sort_by(|(_, a), (_, b)| b.rows.cmp(&a.rows).then(b.share.total_cmp(&a.share)));
    let more = places.len().saturating_sub(NAMES);
    let mut texts: Vec<String> = places
        .iter()
        .take(NAMES)
        .map(|(place, at)| {
            let percent = (at.share * 100.0).round();
            let (rows, bytes) = (at.rows, Bytes(at.bytes));
            format!("{place} in {rows} of {told} rows, up to {percent}% of iterations (at {bytes})")
        })
        .collect();
    if more > 0 {
        texts.push(format!("{more} more"));
    }
    (!texts.is_empty()).then(|| texts.join("; "))
}

#[cfg(test)]
mod tests {
    use super::is_informative;

    #[test]
    fn chance_is_not_told() {
        for (share, even, iterations, told) in [
            (0.5, 0.25, 20, false),
            (0.75, 0.25, 20, true),
            (0.5, 0.5, 1_000_000, false),
            (0.8, 0.5, 10_000, true),
            (1.0, 1.0, 1000, false),
            (0.05, 1.0 / 1024.0, 1_000_000, false),
            (0.2, 1.0 / 1024.0, 1000, true),
            (0.5, 1.0 / 1024.0, 4, false),
        ] {
            assert_eq!(
                is_informative(share, even, iterations),
                told,
                "{share} {even} {iterations}"
            );
        }
    }
}
