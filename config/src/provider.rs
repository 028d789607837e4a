//! [`Provider`]: an execution provider, in `run.toml`, on the command line and in the crate `network`.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

/// Execution provider of ONNX Runtime in one precision, which runs a model; or `auto`, which measures the providers of the
/// machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Provider {
    /// The fastest provider, measured at start.
    Auto,
    /// ONNX Runtime's default CPU provider, f32. Other providers are compared with it.
    Cpu,
    /// ONNX Runtime's default CPU provider, inner convolutions in 8-bit integers: 1.4 to 3 times as fast as f32.
    CpuInt8,
    /// OpenVINO on the CPU, f32.
    OpenvinoF32,
    /// OpenVINO on the CPU, bf16. Eight times as fast as f32 on a CPU with AMX units.
    OpenvinoBf16,
    /// CUDA on an NVIDIA GPU, f32; an error if there is none.
    Cuda,
    /// TensorRT on an NVIDIA GPU; an error if the GPU or TensorRT is missing. Nodes that TensorRT does not take run by
    /// [`Provider::Cuda`].
    Tensorrt,
}

impl Provider {
    /// `auto`, and all providers, the plainest first.
    pub const ALL: [Self; 7] = [
        Self::Auto,
        Self::Cpu,
        Self::CpuInt8,
        Self::OpenvinoF32,
        Self::OpenvinoBf16,
        Self::Cuda,
        Self::Tensorrt,
    ];

    /// Returns all providers, the plainest first.
    pub fn each() -> impl Iterator<Item = Self> {
        Self::ALL.into_iter().filter(|&provider| provider != Self::Auto)
    }

    /// True if the provider computes on a GPU.
    pub fn is_gpu(self) -> bool {
        matches!(self, Self::Cuda | Self::Tensorrt)
    }

    /// Returns the name in `run.toml`, on the command line, in replies and in metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Cpu => "cpu",
            Self::CpuInt8 => "cpu-int8",
            Self::OpenvinoF32 => "openvino-f32",
            Self::OpenvinoBf16 => "openvino-bf16",
            Self::Cuda => "cuda",
            Self::Tensorrt => "tensorrt",
        }
    }
}

impl fmt::Display for Provider {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}

impl FromStr for Provider {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|choice| choice.name() == name);
        found.ok_or_else(|| format!("one of {}", Self::ALL.map(Self::name).join(", ")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_configuration_and_are_parsed() {
        for choice in Provider::ALL {
            assert_eq!(choice.name().parse(), Ok(choice));
            assert_eq!(
                toml::Value::try_from(choice).unwrap().as_str(),
                Some(choice.name())
            );
        }
        assert_eq!(
            "abacus".parse::<Provider>().unwrap_err(),
            "one of auto, cpu, cpu-int8, openvino-f32, openvino-bf16, cuda, tensorrt"
        );
    }
}
