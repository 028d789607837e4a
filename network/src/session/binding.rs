//! Batches in memory that the device reads and writes itself. Rows and legal actions go in, logits of the legal actions and
//! values come back, and nothing else crosses the bus.
//!
//! For a GPU this is pinned memory, which it copies while the CPU does other work. For the CPU it is plain memory, which
//! gains nothing but lets tests run the same code.

use onnx::legal::{LEGAL, LEGAL_LOGITS};
use ort::{
    memory::{AllocationDevice, Allocator, AllocatorType, MemoryInfo, MemoryType},
    session::Session,
    value::{DynValue, PrimitiveTensorElementType, Tensor},
};

use config::Provider;

use crate::{batch::Legal, provider::Settings};

/// Kind of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Memory {
    /// Plain memory of the CPU.
    Cpu,
    /// Memory of the CPU that is pinned for the GPU of this index.
    Pinned(u32),
}

impl Memory {
    /// Returns the memory that `provider` reads and writes.
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

/// Names of the bound inputs and outputs, besides those that [`onnx::legal`] adds.
#[derive(Clone, Debug)]
pub(crate) struct BoundNames {
    pub(crate) input: String,
    pub(crate) policy: String,
    pub(crate) value: String,
}

/// Outputs of a bound batch.
pub(crate) struct BoundOutputs {
    /// Logits of the legal actions, or of all actions.
    pub(crate) policy: DynValue,
    pub(crate) values: DynValue,
}

/// Memory for the batches of one session.
pub(crate) struct Binding {
    allocator: Allocator,
    outputs: MemoryInfo<'static>,
    names: BoundNames,
}

impl Binding {
    /// Makes an allocator for the memory.
    pub(crate) fn new(session: &Session, memory: Memory, names: BoundNames) -> ort::Result<Self> {
        Ok(Self {
            allocator: Allocator::new(session, memory.info(MemoryType::CPUInput)?)?,
            outputs: memory.info(MemoryType::CPUOutput)?,
            names,
        })
    }

    /// Copies rows into the memory.
    pub(crate) fn rows(&self, shape: [usize; 2], rows: &[i32]) -> ort::Result<DynValue> {
        self.put(shape.to_vec(), rows)
    }

    /// Copies planes into the memory.
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

    /// Runs a batch of `size` positions. With `legal`, only the logits of these actions come back.
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
        // The model needs this input even if its output is not wanted.
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
