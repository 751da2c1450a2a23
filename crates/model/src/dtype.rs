use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The type of one element, by nccl-tests' names.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum DType {
    /// 8-bit signed integer.
    Int8,
    /// 8-bit unsigned integer.
    Uint8,
    /// 32-bit signed integer.
    Int32,
    /// 32-bit unsigned integer.
    Uint32,
    /// 64-bit signed integer.
    Int64,
    /// 64-bit unsigned integer.
    Uint64,
    /// IEEE 754 binary16.
    Half,
    /// IEEE 754 binary32.
    Float,
    /// IEEE 754 binary64.
    Double,
    /// bfloat16: the upper half of a binary32.
    Bfloat16,
}

/// Why a text names no element type.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not an element type: write one of {}, or all", DType::names())]
pub struct ParseDTypeError {
    text: String,
}

impl DType {
    /// Every type, in the order in which nccl-tests runs `-d all`.
    pub const ALL: [DType; 10] = [
        DType::Int8,
        DType::Uint8,
        DType::Int32,
        DType::Uint32,
        DType::Int64,
        DType::Uint64,
        DType::Half,
        DType::Float,
        DType::Double,
        DType::Bfloat16,
    ];

    /// nccl-tests' name.
    pub const fn name(self) -> &'static str {
        match self {
            DType::Int8 => "int8",
            DType::Uint8 => "uint8",
            DType::Int32 => "int32",
            DType::Uint32 => "uint32",
            DType::Int64 => "int64",
            DType::Uint64 => "uint64",
            DType::Half => "half",
            DType::Float => "float",
            DType::Double => "double",
            DType::Bfloat16 => "bfloat16",
        }
    }

    /// Bytes of one element.
    pub const fn size(self) -> usize {
        match self {
            DType::Int8 | DType::Uint8 => 1,
            DType::Half | DType::Bfloat16 => 2,
            DType::Int32 | DType::Uint32 | DType::Float => 4,
            DType::Int64 | DType::Uint64 | DType::Double => 8,
        }
    }

    /// Whether the type has fractions.
    pub const fn is_float(self) -> bool {
        matches!(self, DType::Half | DType::Float | DType::Double | DType::Bfloat16)
    }

    fn names() -> String {
        DType::ALL.map(DType::name).join(" ")
    }
}

impl FromStr for DType {
    type Err = ParseDTypeError;

    /// nccl-tests' names, and the usual short ones (`f32`, `bf16`, `i64`, `char`, …).
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(match text.to_ascii_lowercase().as_str() {
            "int8" | "i8" | "char" => DType::Int8,
            "uint8" | "u8" | "byte" => DType::Uint8,
            "int32" | "i32" | "int" => DType::Int32,
            "uint32" | "u32" => DType::Uint32,
            "int64" | "i64" => DType::Int64,
            "uint64" | "u64" => DType::Uint64,
            "half" | "float16" | "fp16" | "f16" => DType::Half,
            "float" | "float32" | "fp32" | "f32" => DType::Float,
            "double" | "float64" | "fp64" | "f64" => DType::Double,
            "bfloat16" | "bf16" => DType::Bfloat16,
            _ => return Err(ParseDTypeError { text: text.to_owned() }),
        })
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
