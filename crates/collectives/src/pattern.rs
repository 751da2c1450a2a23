//! Test data whose result is known exactly, in every type, at any number of ranks.
//!
//! Data that is only moved is arbitrary (never NaN) and differs for every rank and element. Data
//! that is reduced is made of integers so small that *every partial result, in any order*, is
//! representable:
//!
//! - sum and avg: a rank contributes 1 to 7, but at each element only as many ranks as keep the
//!   largest partial sum within the type's exact range (18 ranks for int8: 18 × 7 = 126 ≤ 127; 36
//!   for uint8 and bfloat16 [256]; 292 for half [2048]); the others contribute 0. Which ranks they
//!   are moves on by one with each element, so that every rank counts somewhere.
//! - prod: each rank contributes ±1 (1 for unsigned types), at most six of them times 2: ±64 at most.
//! - max and min: −100 to 100, or 0 to 200; the extreme is one rank's alone, another one's with each
//!   element.
//!
//! So no rounding and no overflow can occur, and whatever algorithm, order or partition a library
//! chooses, one element differs only if it is wrong. avg divides that exact sum once; the division
//! is the library's or ours, and allowed 2 units in the last place. The average of an 8-bit integer is 0
//! from 127 (signed) or 253 (unsigned) ranks on: there the check sees only whether a result arrived.
//!
//! Data repeat after [`PERIOD`] elements, a prime, so that a block that lands a power of two or a
//! whole share away from its place is seen.

use hpcbench_model::{DType, RedOp};

use crate::element::Element;

/// Elements after which test data repeat: the largest prime below 4096.
pub(crate) const PERIOD: usize = 4093;

/// Largest contribution of one rank to a sum.
const SUMMAND: u64 = 7;
/// Most ranks that contribute a factor of 2 to a product.
const DOUBLING_RANKS: u64 = 6;

/// What every rank's data are in one check.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pattern {
    pub dtype: DType,
    /// `None`: data are only moved.
    pub redop: Option<RedOp>,
    pub ranks: usize,
    pub seed: u64,
}

impl Pattern {
    /// The first [`PERIOD`] elements of a rank's input.
    pub fn input<T: Element>(&self, rank: usize) -> Vec<T> {
        let element = |index| match self.redop {
            None => T::from_random(self.random(rank, index)),
            Some(op) => T::from_i64(self.operand(op, rank, index)),
        };
        (0..PERIOD).map(element).collect()
    }

    /// The first [`PERIOD`] elements of the reduction of all ranks' inputs.
    pub fn reduced<T: Element>(&self, op: RedOp) -> Vec<T> {
        let element = |index| {
            let operands = (0..self.ranks).map(|rank| self.operand(op, rank, index));
            let exact = match op {
                RedOp::Sum | RedOp::Avg => operands.sum(),
                RedOp::Prod => operands.product(),
                RedOp::Max => operands.max().unwrap_or(0),
                RedOp::Min => operands.min().unwrap_or(0),
            };
            let value = T::from_i64(exact);
            if op == RedOp::Avg { value.divided(self.ranks as u64) } else { value }
        };
        (0..PERIOD).map(element).collect()
    }

    fn operand(&self, op: RedOp, rank: usize, index: usize) -> i64 {
        let random = self.random(rank, index);
        let unsigned = matches!(self.dtype, DType::Uint8 | DType::Uint32 | DType::Uint64);
        // The window of contributing ranks moves on by one with each element.
        let ranks = self.ranks as u64;
        let place = (rank as u64 + index as u64 + self.seed % ranks) % ranks;
        match op {
            RedOp::Sum | RedOp::Avg if place >= self.exact_sum() / SUMMAND => 0,
            RedOp::Sum | RedOp::Avg => 1 + (random % SUMMAND) as i64,
            RedOp::Prod => {
                let sign = if unsigned || random & 1 == 0 { 1 } else { -1 };
                if place < DOUBLING_RANKS { 2 * sign } else { sign }
            }
            RedOp::Max | RedOp::Min => {
                let base = if unsigned { 0 } else { -100 };
                // One rank alone has the extreme, so that leaving it out shows.
                match (op, place) {
                    (RedOp::Max, 0) => base + 200,
                    (RedOp::Min, 0) => base,
                    _ => base + 1 + (random % 199) as i64,
                }
            }
        }
    }

    /// Largest n such that 0..=n are all exact in the type.
    fn exact_sum(&self) -> u64 {
        match self.dtype {
            DType::Int8 => 127,
            DType::Uint8 => 255,
            DType::Bfloat16 => 256,
            DType::Half => 2048,
            _ => 1 << 24,
        }
    }

    /// 64 bits that differ for every seed, rank and element: splitmix64's finaliser (Steele, Lea and
    /// Flood, "Fast splittable pseudorandom number generators", 2014).
    fn random(&self, rank: usize, index: usize) -> u64 {
        let mut z =
            self.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ ((rank as u64) << 32 | index as u64);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

/// Fills `out` with the table's elements, from element `from` of the endless data on.
pub(crate) fn fill<T: Element>(out: &mut [T], table: &[T], from: usize) {
    for (chunk, piece) in pieces(out.len(), table.len(), from) {
        out[chunk.clone()].copy_from_slice(&table[piece..piece + chunk.len()]);
    }
}

/// Stretches of `length` elements that lie in one repetition each, with where they start in it.
pub(crate) fn pieces(
    length: usize,
    period: usize,
    from: usize,
) -> impl Iterator<Item = (std::ops::Range<usize>, usize)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let piece = (from + at) % period;
        let end = length.min(at + period - piece);
        let chunk = at..end;
        at = end;
        (!chunk.is_empty()).then_some((chunk, piece))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::element::with_element;
    use proptest::prelude::*;

    fn combine<T: Element>(op: RedOp, a: f64, b: f64) -> f64 {
        // Rounded to the type after every step, as a library does.
        let exact = match op {
            RedOp::Sum | RedOp::Avg => a + b,
            RedOp::Prod => a * b,
            RedOp::Max => a.max(b),
            RedOp::Min => a.min(b),
        };
        T::from_i64(exact as i64).to_string().parse().unwrap()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]
        #[test]
        fn every_order_gives_the_same_exact_result(
            dtype in prop::sample::select(DType::ALL.to_vec()), op in prop::sample::select(RedOp::ALL.to_vec()),
            ranks in 1_usize..1100, seed: u64, index in 0_usize..PERIOD, rotate in 0_usize..1100,
        ) {
            let pattern = Pattern { dtype, redop: Some(op), ranks, seed };
            let (backwards, from_middle, expected): (f64, f64, i64) = with_element!(dtype, T => {
                let operand = |rank: usize| pattern.operand(op, rank % ranks, index) as f64;
                let backwards = (0..ranks).rev().map(operand).reduce(|a, b| combine::<T>(op, a, b)).unwrap();
                let from_middle = (rotate..rotate + ranks).map(operand).reduce(|a, b| combine::<T>(op, a, b)).unwrap();
                let operands = (0..ranks).map(|rank| pattern.operand(op, rank, index));
                let expected = match op {
                    RedOp::Sum | RedOp::Avg => operands.sum(), RedOp::Prod => operands.product(),
                    RedOp::Max => operands.max().unwrap(), RedOp::Min => operands.min().unwrap(),
                };
                (backwards, from_middle, expected)
            });
            prop_assert_eq!(backwards, expected as f64);
            prop_assert_eq!(from_middle, expected as f64);
        }

        #[test]
        fn filling_continues_where_it_left_off(from in 0_usize..20_000, length in 0_usize..9000, cut in 0_usize..9000) {
            let table: Vec<i32> = (0..PERIOD as i32).collect();
            let mut whole = vec![-1; length];
            fill(&mut whole, &table, from);
            let cut = cut.min(length);
            let mut parts = vec![-1; length];
            fill(&mut parts[..cut], &table, from);
            fill(&mut parts[cut..], &table, from + cut);
            prop_assert_eq!(&whole, &parts);
            prop_assert!(whole.iter().enumerate().all(|(i, v)| *v == ((from + i) % PERIOD) as i32));
        }
    }

    #[test]
    fn every_rank_counts_in_a_sum_of_many() {
        let pattern = Pattern { dtype: DType::Int8, redop: Some(RedOp::Sum), ranks: 500, seed: 3 };
        for rank in [0, 1, 250, 499] {
            assert!(
                (0..PERIOD).any(|index| pattern.operand(RedOp::Sum, rank, index) > 0),
                "{rank}"
            );
        }
    }

    #[test]
    fn ranks_and_seeds_differ() {
        let of = |seed, rank| {
            Pattern { dtype: DType::Double, redop: None, ranks: 4, seed }.input::<f64>(rank)
        };
        assert_ne!(of(1, 0), of(1, 1));
        assert_ne!(of(1, 0), of(2, 0));
    }
}
