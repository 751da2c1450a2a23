use crate::Bytes;

/// How a sweep goes from one size to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Multiply by this (`-f`), at least 2.
    Factor(u64),
    /// Add this (`-i`), at least 1.
    Bytes(Bytes),
}

/// The message sizes of a run, from `min` to `max` inclusive, as nccl-tests' `-b -e -f -i`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sweep {
    min: Bytes,
    max: Bytes,
    step: Step,
}

/// Why sizes make no sweep.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SweepError {
    /// Begin above end.
    #[error("the sweep begins at {min} and ends below it, at {max}: write -b SMALL -e LARGE")]
    BeginAboveEnd {
        /// First size.
        min: Bytes,
        /// Last size.
        max: Bytes,
    },
    /// A step that never arrives.
    #[error("a step {0} never leaves the first size: write -f 2 (or more), or -i BYTES")]
    StuckStep(String),
    /// A factor cannot leave zero.
    #[error("a sweep by a factor cannot begin at 0: write -b 8, or step by bytes with -i")]
    FactorFromZero,
}

impl Sweep {
    /// Checks that the sweep ends.
    ///
    /// # Errors
    /// When it begins above its end, or its step never leaves the first size.
    pub fn new(min: Bytes, max: Bytes, step: Step) -> Result<Self, SweepError> {
        if min > max {
            return Err(SweepError::BeginAboveEnd { min, max });
        }
        match step {
            Step::Factor(factor) if factor < 2 => {
                Err(SweepError::StuckStep(format!("factor of {factor}")))
            }
            Step::Bytes(Bytes(0)) => Err(SweepError::StuckStep("of 0 bytes".to_owned())),
            Step::Factor(_) if min == Bytes(0) && max > min => Err(SweepError::FactorFromZero),
            _ => Ok(Sweep { min, max, step }),
        }
    }

    /// First size.
    pub const fn min(&self) -> Bytes {
        self.min
    }

    /// Upper bound of the sizes.
    pub const fn max(&self) -> Bytes {
        self.max
    }

    /// The step.
    pub const fn step(&self) -> Step {
        self.step
    }

    /// The largest size of the sweep, which may lie below its upper bound.
    pub fn last(&self) -> Bytes {
        match self.step {
            Step::Factor(_) => self.sizes().last().unwrap_or(self.min),
            Step::Bytes(step) => Bytes(self.min.0 + (self.max.0 - self.min.0) / step.0 * step.0),
        }
    }

    /// Number of sizes.
    pub fn count(&self) -> u64 {
        match self.step {
            Step::Factor(_) => self.sizes().count() as u64,
            Step::Bytes(step) => ((self.max.0 - self.min.0) / step.0).saturating_add(1),
        }
    }

    /// The sizes, ascending.
    pub fn sizes(&self) -> impl Iterator<Item = Bytes> + use<> {
        let Sweep { min, max, step } = *self;
        std::iter::successors(Some(min), move |size| match step {
            Step::Factor(factor) => size.0.checked_mul(factor).map(Bytes),
            Step::Bytes(bytes) => size.0.checked_add(bytes.0).map(Bytes),
        })
        .take_while(move |size| *size <= max)
        // 0 times anything is 0: a single row, not an endless one.
        .take(if min == Bytes(0) && matches!(step, Step::Factor(_)) {
            1
        } else {
            usize::MAX
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sizes(min: u64, max: u64, step: Step) -> Vec<u64> {
        Sweep::new(Bytes(min), Bytes(max), step).unwrap().sizes().map(|b| b.0).collect()
    }

    #[test]
    fn steps_as_nccl_tests_does() {
        assert_eq!(sizes(8, 64, Step::Factor(2)), [8, 16, 32, 64]);
        assert_eq!(sizes(8, 100, Step::Factor(4)), [8, 32]);
        assert_eq!(sizes(10, 30, Step::Bytes(Bytes(10))), [10, 20, 30]);
        assert_eq!(sizes(0, 0, Step::Factor(2)), [0]);
    }

    #[test]
    fn refuses_sweeps_without_an_end() {
        for (min, max, step) in [
            (9, 8, Step::Factor(2)),
            (1, 8, Step::Factor(1)),
            (1, 8, Step::Bytes(Bytes(0))),
            (0, 8, Step::Factor(2)),
        ] {
            assert!(Sweep::new(Bytes(min), Bytes(max), step).is_err(), "{min} {max} {step:?}");
        }
    }

    proptest! {
        #[test]
        fn stays_inside_and_ascends(min in 1_u64..1 << 40, span in 0_u64..1 << 40, factor in 2_u64..9) {
            let all = sizes(min, min + span, Step::Factor(factor));
            prop_assert_eq!(all[0], min);
            prop_assert!(all.windows(2).all(|w| w[1] == w[0] * factor));
            prop_assert!(all.iter().all(|s| *s <= min + span));
            prop_assert!(all[all.len() - 1] * factor > min + span);
        }

        #[test]
        fn last_and_count_are_those_of_the_sizes(min in 1_u64..5000, span in 0_u64..5000, step in 2_u64..700) {
            for step in [Step::Factor(step), Step::Bytes(Bytes(step))] {
                let sweep = Sweep::new(Bytes(min), Bytes(min + span), step).unwrap();
                prop_assert_eq!(Some(sweep.last()), sweep.sizes().last());
                prop_assert_eq!(sweep.count(), sweep.sizes().count() as u64);
            }
        }
    }
}
