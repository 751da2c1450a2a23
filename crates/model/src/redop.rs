use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How a reducing collective combines elements, by nccl-tests' names.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum RedOp {
    /// Sum.
    Sum,
    /// Product.
    Prod,
    /// Largest.
    Max,
    /// Smallest.
    Min,
    /// Sum divided by the number of ranks; integers truncate towards zero, as NCCL's.
    Avg,
}

/// Why a text names no reduction.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a reduction: write one of {}, or all", RedOp::ALL.map(RedOp::name).join(" "))]
pub struct ParseRedOpError {
    text: String,
}

impl RedOp {
    /// Every reduction, in the order in which nccl-tests runs `-o all`.
    pub const ALL: [RedOp; 5] = [RedOp::Sum, RedOp::Prod, RedOp::Max, RedOp::Min, RedOp::Avg];

    /// nccl-tests' name.
    pub const fn name(self) -> &'static str {
        match self {
            RedOp::Sum => "sum",
            RedOp::Prod => "prod",
            RedOp::Max => "max",
            RedOp::Min => "min",
            RedOp::Avg => "avg",
        }
    }
}

impl FromStr for RedOp {
    type Err = ParseRedOpError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        RedOp::ALL
            .into_iter()
            .find(|op| op.name() == text.to_ascii_lowercase())
            .ok_or_else(|| ParseRedOpError { text: text.to_owned() })
    }
}

impl fmt::Display for RedOp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
