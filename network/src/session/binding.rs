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

use crate::{batch::Legal, session::Contract};

/// Memory for the batches of one session.
pub(crate) struct Binding {
    allocator: Allocator,
    outputs: MemoryInfo<'static>,
}

impl Binding {
    /// Makes an allocator of plain memory of the CPU, or of memory that is pinned for the GPU of this index.
    pub(crate) fn new(session: &Session, gpu: Option<u32>) -> ort::Result<Self> {
        let memory = |kind| {
            let (device, number) = match gpu {
                None => (AllocationDevice::CPU, 0),
                Some(number) => (AllocationDevice::CUDA_PINNED, number as i32),
            };
            MemoryInfo::new(device, number, AllocatorType::Device, kind)
        };
        Ok(Self {
            allocator: Allocator::new(session, memory(MemoryType::CPUInput)?)?,
            outputs: memory(MemoryType::CPUOutput)?,
        })
    }

    /// Copies numbers into the memory.
    pub(crate) fn put<T: PrimitiveTensorElementType + Copy + std::fmt::Debug>(
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

    /// Runs a batch of `size` positions. Returns the logits, and the values. With `legal`, only the logits of these actions come back.
    pub(crate) fn run(
        &self,
        session: &mut Session,
        (input, given): (&str, &DynValue),
        size: usize,
        legal: Option<Legal>,
        contract: &Contract,
    ) -> ort::Result<(DynValue, DynValue)> {
        let policy = match legal {
            Some(_) => LEGAL_LOGITS,
            None => contract.policy.as_str(),
        };
        // The model needs this input even if its output is not wanted.
        let legal = legal.unwrap_or_else(|| Legal {
            actions: vec![0; size],
            width: 1,
        });
        let legal = self.put(vec![size, legal.width], &legal.actions)?;
        let mut binding = session.create_binding()?;
        binding.bind_input(input, given)?;
        binding.bind_input(LEGAL, &legal)?;
        binding.bind_output_to_device(policy, &self.outputs)?;
        binding.bind_output_to_device(&contract.value, &self.outputs)?;
        binding.synchronize_inputs()?;
        let mut outputs = session.run_binding(&binding)?;
        binding.synchronize_outputs()?;
        let mut take = |name: &str| {
            outputs
                .remove(name)
                .ok_or_else(|| ort::Error::new(format!("the model gave no {name}")))
        };
        Ok((take(policy)?, take(&contract.value)?))
    }
}
