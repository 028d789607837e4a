//! A batch in memory that the device reaches by itself: the rows and the legal actions go out, the legal actions' logits and
//! the values come back, and nothing else crosses the bus.
//!
//! For a GPU that is pinned memory, from which it copies while the CPU does other things; for the CPU it is its own, which
//! gains nothing but lets the same code be tested there.

use onnx::legal::{LEGAL, LEGAL_LOGITS};
use ort::{
    memory::{AllocationDevice, Allocator, AllocatorType, MemoryInfo, MemoryType},
    session::Session,
    value::{DynValue, PrimitiveTensorElementType, Tensor},
};

use crate::{
    batch::Legal,
    provider::{Provider, Settings},
};

/// Which memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Memory {
    /// The CPU's.
    Cpu,
    /// That of the CPU which this GPU, counted from 0, copies from and to.
    Pinned(u32),
}

impl Memory {
    /// That which `provider` reaches.
    pub fn of(provider: Provider, settings: &Settings) -> Self {
        if provider.is_gpu() {
            Self::Pinned(settings.device)
        } else {
            Self::Cpu
        }
    }

    fn info(self, kind: MemoryType) -> ort::Result<MemoryInfo<'static>> {
        let (device, number) = match self {
            Self::Cpu => (AllocationDevice::CPU, 0),
            Self::Pinned(number) => (AllocationDevice::CUDA_PINNED, number as i32),
        };
        MemoryInfo::new(device, number, AllocatorType::Device, kind)
    }
}

/// What a model calls what is bound, beside what [`onnx::legal`] has added.
#[derive(Clone, Debug)]
pub(crate) struct BoundNames {
    pub(crate) input: String,
    pub(crate) policy: String,
    pub(crate) value: String,
}

/// What a batch gave.
pub(crate) struct BoundOutputs {
    /// The logits of the legal actions, or of all.
    pub(crate) policy: DynValue,
    pub(crate) values: DynValue,
}

/// Where the batches of one session lie.
pub(crate) struct Binding {
    allocator: Allocator,
    outputs: MemoryInfo<'static>,
    names: BoundNames,
}

impl Binding {
    /// Finds the memory.
    pub(crate) fn new(session: &Session, memory: Memory, names: BoundNames) -> ort::Result<Self> {
        Ok(Self {
            allocator: Allocator::new(session, memory.info(MemoryType::CPUInput)?)?,
            outputs: memory.info(MemoryType::CPUOutput)?,
            names,
        })
    }

    /// Puts rows there.
    pub(crate) fn rows(&self, shape: [usize; 2], rows: &[i32]) -> ort::Result<DynValue> {
        self.put(shape.to_vec(), rows)
    }

    /// Puts planes there.
    pub(crate) fn planes(&self, shape: [usize; 4], planes: &[f32]) -> ort::Result<DynValue> {
        self.put(shape.to_vec(), planes)
    }

    fn put<T: PrimitiveTensorElementType + Copy + std::fmt::Debug>(
        &self,
        shape: Vec<usize>,
        numbers: &[T],
    ) -> ort::Result<DynValue> {
        let mut tensor = Tensor::<T>::new(&self.allocator, shape)?;
        let (_, places) = tensor.try_extract_tensor_mut::<T>()?;
        for (place, &number) in places.iter_mut().zip(numbers) {
            *place = number;
        }
        Ok(tensor.into_dyn())
    }

    /// Runs a batch of `size`; where `legal` is given, only those logits come back.
    pub(crate) fn run(
        &self,
        session: &mut Session,
        given: &DynValue,
        size: usize,
        legal: Option<Legal>,
    ) -> ort::Result<BoundOutputs> {
        let policy = match legal {
            Some(_) => LEGAL_LOGITS,
            None => self.names.policy.as_str(),
        };
        // The model takes the input whether or not its output is wanted.
        let legal = legal.unwrap_or_else(|| Legal {
            actions: vec![0; size],
            width: 1,
        });
        let legal = self.put(vec![size, legal.width], &legal.actions)?;
        let mut binding = session.create_binding()?;
        binding.bind_input(&self.names.input, given)?;
        binding.bind_input(LEGAL, &legal)?;
        binding.bind_output_to_device(policy, &self.outputs)?;
        binding.bind_output_to_device(&self.names.value, &self.outputs)?;
        binding.synchronize_inputs()?;
        let mut outputs = session.run_binding(&binding)?;
        binding.synchronize_outputs()?;
        let mut take = |name: &str| {
            outputs
                .remove(name)
                .ok_or_else(|| ort::Error::new(format!("the model gave no {name}")))
        };
        Ok(BoundOutputs {
            policy: take(policy)?,
            values: take(&self.names.value)?,
        })
    }
}
