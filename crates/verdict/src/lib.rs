//! Statistics and judgement over samples. Pure: numbers in, numbers out.

pub mod stats;
