use hpcbench_model::{RedOp, Source};

use crate::element::{Element, with_element};
use crate::pattern::{Pattern, fill, pieces};
use crate::{Buffers, Call};

/// What a check found on one rank.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Checked {
    /// Wrong elements.
    pub wrong: u64,
    /// The first of them: index in the receive buffer, got, expected.
    pub first: Option<(u64, String, String)>,
}

/// Fills a rank's buffers before a call and compares every element after it.
#[derive(Clone, Debug)]
pub struct Checker {
    rank: usize,
    ranks: usize,
}

/// Units in the last place that an average in a floating type may be off.
const AVG_ULPS: u64 = 2;
/// What receive buffers hold before a call, so that nothing received is nothing right.
const POISON: i64 = 85;

impl Checker {
    /// A checker for one rank of so many.
    pub fn new(rank: usize, ranks: usize) -> Checker {
        Checker { rank, ranks }
    }

    /// Puts this rank's input where the call takes it from, and poison where it puts its output.
    pub fn fill(&self, call: &Call, seed: u64, buffers: &mut Buffers) {
        with_element!(call.dtype, T => self.fill_as::<T>(call, seed, buffers));
    }

    /// Compares what the call left, from element `output_at` of the receive buffer on.
    pub fn check(
        &self,
        call: &Call,
        seed: u64,
        output_at: usize,
        buffers: &mut Buffers,
    ) -> Checked {
        with_element!(call.dtype, T => self.check_as::<T>(call, seed, output_at, buffers))
    }

    /// Changes one element of the receive buffer, to prove that the check sees it.
    pub fn corrupt(&self, call: &Call, element: usize, buffers: &mut Buffers) {
        with_element!(call.dtype, T => {
            if let Some(value) = buffers.recv::<T>().get_mut(element) {
                *value = value.corrupted();
            }
        });
    }

    fn pattern(&self, call: &Call, seed: u64) -> Pattern {
        Pattern { dtype: call.dtype, redop: call.redop, ranks: self.ranks, seed }
    }

    fn fill_as<T: Element>(&self, call: &Call, seed: u64, buffers: &mut Buffers) {
        let layout = &call.layout;
        let input = self.pattern(call, seed).input::<T>(self.rank);
        buffers.recv::<T>()[..layout.size()].fill(T::from_i64(POISON));
        if call.in_place {
            let at = self.rank * layout.send_in_place;
            fill(&mut buffers.recv::<T>()[at..at + layout.send], &input, 0);
        } else {
            fill(&mut buffers.send::<T>()[..layout.send], &input, 0);
        }
    }

    fn check_as<T: Element>(
        &self,
        call: &Call,
        seed: u64,
        output_at: usize,
        buffers: &mut Buffers,
    ) -> Checked {
        if call.only_sends(self.rank, self.ranks) {
            return Checked::default();
        }
        let pattern = self.pattern(call, seed);
        let redop = call.redop.unwrap_or(RedOp::Sum);
        let allowed =
            if call.redop == Some(RedOp::Avg) && call.dtype.is_float() { AVG_ULPS } else { 0 };
        let received = buffers.recv::<T>();
        let mut checked = Checked::default();
        for segment in (call.collective.expected)(self.rank, self.ranks, call.root, &call.layout) {
            let (table, from) = match segment.source {
                Source::Rank { rank, from } => (pattern.input::<T>(rank), from),
                Source::Reduced { from } => (pattern.reduced::<T>(redop), from),
            };
            let at = output_at + segment.at;
            compare(&received[at..at + segment.len], &table, from, allowed, at, &mut checked);
        }
        checked
    }
}

fn compare<T: Element>(
    got: &[T],
    table: &[T],
    from: usize,
    allowed: u64,
    at: usize,
    checked: &mut Checked,
) {
    for (chunk, piece) in pieces(got.len(), table.len(), from) {
        let expected = &table[piece..piece + chunk.len()];
        // Nearly always equal, and that comparison is the fast one.
        if got[chunk.clone()] == *expected {
            continue;
        }
        for (offset, (got, expected)) in got[chunk.clone()].iter().zip(expected).enumerate() {
            if got.distance(*expected) > allowed {
                checked.wrong += 1;
                checked.first.get_or_insert_with(|| {
                    ((at + chunk.start + offset) as u64, got.to_string(), expected.to_string())
                });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Exchange;
    use hpcbench_model::{DType, collective};

    fn call(name: &str, redop: Option<RedOp>, dtype: DType, in_place: bool) -> Call {
        let collective = collective::by_name(name).unwrap();
        let layout = (collective.layout)(10_000, dtype.size(), 4);
        Call { collective, dtype, redop, root: 0, layout, in_place, exchange: Default::default() }
    }

    #[test]
    fn a_buffer_nothing_was_received_into_is_wrong() {
        for dtype in DType::ALL {
            let call = call("broadcast", None, dtype, false);
            let mut buffers = Buffers::new(80_000, 0).unwrap();
            let checker = Checker::new(1, 4);
            checker.fill(&call, 5, &mut buffers);
            let checked = checker.check(&call, 5, 0, &mut buffers);
            assert!(checked.wrong > 9_000, "{dtype}: {}", checked.wrong);
            assert!(checked.first.is_some());
        }
    }

    #[test]
    fn only_the_far_end_of_a_one_way_window_has_received() {
        for (two_way, rank, received) in
            [(false, 0, false), (false, 2, true), (true, 0, true), (true, 2, true)]
        {
            let mut call = call("pingpong", None, DType::Float, false);
            call.exchange = Exchange { window: Some(4), two_way };
            let mut buffers = Buffers::new(80_000, 0).unwrap();
            let checker = Checker::new(rank, 4);
            checker.fill(&call, 5, &mut buffers);
            let wrong = checker.check(&call, 5, 0, &mut buffers).wrong;
            assert_eq!(wrong > 0, received, "{two_way} {rank}: {wrong}");
        }
    }

    #[test]
    fn one_corrupted_element_is_found_where_it_is() {
        // The root of a broadcast in place has the right result already.
        let call = call("broadcast", None, DType::Float, true);
        let mut buffers = Buffers::new(80_000, 0).unwrap();
        let checker = Checker::new(0, 4);
        checker.fill(&call, 9, &mut buffers);
        assert_eq!(checker.check(&call, 9, 0, &mut buffers), Checked::default());
        checker.corrupt(&call, 7_777, &mut buffers);
        let checked = checker.check(&call, 9, 0, &mut buffers);
        assert_eq!((checked.wrong, checked.first.unwrap().0), (1, 7_777));
    }

    #[test]
    fn an_average_may_be_two_units_off_and_no_more() {
        let table = [1.0_f32, 2.0];
        let off = |ulps: u32| [1.0_f32, f32::from_bits(2.0_f32.to_bits() + ulps)];
        let wrong = |got: [f32; 2]| {
            let mut checked = Checked::default();
            compare(&got, &table, 0, AVG_ULPS, 0, &mut checked);
            checked.wrong
        };
        assert_eq!((wrong(off(0)), wrong(off(2)), wrong(off(3))), (0, 0, 1));
    }
}
