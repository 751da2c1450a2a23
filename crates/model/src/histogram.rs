use hdrhistogram::Histogram as Hdr;
use hdrhistogram::serialization::{Deserializer, Serializer, V2DeflateSerializer};

/// Largest time a histogram keeps, in nanoseconds: one hour. Longer ones are kept as this.
const MAX_NS: u64 = 3_600_000_000_000;
/// Significant decimal digits kept of a time.
const DIGITS: u8 = 3;

/// Times in nanoseconds, 1 ns to one hour, three significant digits: an HdrHistogram of fixed size
/// (about 260 KiB), so recording never allocates.
#[derive(Clone, Debug, PartialEq)]
pub struct Histogram(Hdr<u64>);

/// Why an encoded histogram does not read.
#[derive(Debug, thiserror::Error)]
pub enum HistogramError {
    /// Not an HdrHistogram, or one with counts we cannot hold.
    #[error("not a readable HdrHistogram: {0}")]
    Unreadable(String),
}

/// Whether `n` samples say anything about the quantile `q`: at least 10 of them lie beyond it
/// (n·(1−q) ≥ 10), so that the figure is not one outlier's.
pub fn enough_samples(n: u64, q: f64) -> bool {
    // The small addend keeps 100 samples enough for 0.9, where 100·(1−0.9) is 9.999….
    n as f64 * (1.0 - q) + 1e-6 >= 10.0
}

impl Default for Histogram {
    fn default() -> Self {
        Self::new()
    }
}

impl Histogram {
    /// An empty histogram.
    ///
    /// # Panics
    /// Never: the bounds are constants that HdrHistogram accepts.
    pub fn new() -> Self {
        Histogram(Hdr::new_with_bounds(1, MAX_NS, DIGITS).expect("constant bounds are valid"))
    }

    /// Adds one time; 0 counts as 1 ns, more than an hour as an hour.
    pub fn record_ns(&mut self, ns: u64) {
        self.0.saturating_record(ns.max(1));
    }

    /// Adds all of another's samples.
    pub fn merge(&mut self, other: &Histogram) {
        self.0.add(&other.0).expect("all histograms have the same bounds");
    }

    /// Forgets every sample, keeping the memory.
    pub fn clear(&mut self) {
        self.0.reset();
    }

    /// How many samples it holds.
    pub fn count(&self) -> u64 {
        self.0.len()
    }

    /// Time at quantile `q` in 0..=1, whatever the number of samples; `None` when empty.
    pub fn quantile_ns(&self, q: f64) -> Option<u64> {
        (self.count() > 0).then(|| self.0.value_at_quantile(q))
    }

    /// Time at quantile `q`, only where [`enough_samples`] holds.
    pub fn tail_ns(&self, q: f64) -> Option<u64> {
        if enough_samples(self.count(), q) { self.quantile_ns(q) } else { None }
    }

    /// Smallest time; `None` when empty.
    pub fn min_ns(&self) -> Option<u64> {
        (self.count() > 0).then(|| self.0.min())
    }

    /// Largest time; `None` when empty.
    pub fn max_ns(&self) -> Option<u64> {
        (self.count() > 0).then(|| self.0.max())
    }

    /// Arithmetic mean; `None` when empty.
    pub fn mean_ns(&self) -> Option<f64> {
        (self.count() > 0).then(|| self.0.mean())
    }

    /// HdrHistogram's V2 compressed form, as its tools read it.
    ///
    /// # Panics
    /// Never: writing into memory does not fail.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        V2DeflateSerializer::new().serialize(&self.0, &mut bytes).expect("memory takes every byte");
        bytes
    }

    /// Reads what [`Histogram::encode`] or any HdrHistogram tool wrote (V2, compressed or not).
    ///
    /// # Errors
    /// When the bytes are no HdrHistogram.
    pub fn decode(bytes: &[u8]) -> Result<Self, HistogramError> {
        let mut own = Histogram::new();
        own.merge_encoded(bytes)?;
        Ok(own)
    }

    /// Adds all samples of an encoded histogram (see [`Histogram::decode`]) and returns the largest
    /// of them, in nanoseconds; `None` when it holds none.
    ///
    /// # Errors
    /// When the bytes are no HdrHistogram; `self` is then unchanged.
    pub fn merge_encoded(&mut self, mut bytes: &[u8]) -> Result<Option<u64>, HistogramError> {
        let read: Hdr<u64> = Deserializer::new()
            .deserialize(&mut bytes)
            .map_err(|e| HistogramError::Unreadable(e.to_string()))?;
        self.0.add(&read).map_err(|e| HistogramError::Unreadable(e.to_string()))?;
        Ok((!read.is_empty()).then(|| read.max()))
    }

    /// The histogram itself, for writers of its log format.
    pub fn as_hdr(&self) -> &Hdr<u64> {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_tail_needs_ten_samples_beyond_it() {
        for (n, q, enough) in [
            (19, 0.5, false),
            (20, 0.5, true),
            (100, 0.9, true),
            (999, 0.99, false),
            (1000, 0.99, true),
        ] {
            assert_eq!(enough_samples(n, q), enough, "{n} {q}");
        }
        let mut h = Histogram::new();
        (0..19).for_each(|_| h.record_ns(5));
        assert_eq!(h.tail_ns(0.5), None);
        h.record_ns(5);
        assert_eq!(h.tail_ns(0.5), Some(5));
    }

    #[test]
    fn keeps_zero_and_more_than_an_hour() {
        let mut h = Histogram::new();
        h.record_ns(0);
        h.record_ns(u64::MAX);
        assert_eq!(h.count(), 2);
        assert_eq!(h.min_ns(), Some(1));
    }

    #[test]
    fn garbage_is_an_error() {
        let mut h = Histogram::new();
        assert!(h.merge_encoded(b"not a histogram").is_err());
        assert_eq!(h, Histogram::new());
    }

    proptest! {
        #[test]
        fn merging_is_recording_all(a in prop::collection::vec(1_u64..1 << 40, 0..200),
                                    b in prop::collection::vec(1_u64..1 << 40, 0..200)) {
            let of = |values: &[u64]| { let mut h = Histogram::new(); values.iter().for_each(|v| h.record_ns(*v)); h };
            let mut merged = of(&a);
            merged.merge(&of(&b));
            let both: Vec<u64> = a.iter().chain(&b).copied().collect();
            prop_assert_eq!(&merged, &of(&both));
            prop_assert_eq!(&Histogram::decode(&merged.encode()).unwrap(), &merged);
            let mut from_encoded = of(&a);
            let largest = from_encoded.merge_encoded(&of(&b).encode()).unwrap();
            prop_assert_eq!(largest, of(&b).max_ns());
            prop_assert_eq!(from_encoded, merged);
        }

        #[test]
        fn quantiles_are_within_three_digits(mut v in prop::collection::vec(1_u64..1 << 40, 1..300), q in 0.0_f64..1.0) {
            let mut h = Histogram::new();
            v.iter().for_each(|x| h.record_ns(*x));
            v.sort_unstable();
            let rank = ((q * v.len() as f64).ceil() as usize).clamp(1, v.len());
            let exact = v[rank - 1] as f64;
            let got = h.quantile_ns(q).unwrap() as f64;
            // Rounding of q·n may take the neighbouring sample; the value itself is 1/1000 exact.
            let near = [rank.saturating_sub(2), rank - 1, rank.min(v.len() - 1)].map(|i| v[i] as f64);
            prop_assert!(near.iter().any(|x| (got - x).abs() <= x / 500.0 + 1.0), "{} {}", got, exact);
        }
    }
}
