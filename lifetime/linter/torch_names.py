"""What torch's own names return: plain values, tensors without a graph, or results that autograd records."""

from __future__ import annotations


def words(text: str) -> frozenset[str]:
    return frozenset(text.split())


PLAIN_ATTRIBUTES = words(
    """
    shape dtype device layout ndim requires_grad is_leaf is_cuda is_sparse is_quantized is_meta itemsize nbytes names
    training __class__ __name__ __dict__ output_nr retains_grad is_nested is_cpu is_mps is_xpu
    """
)
VIEW_ATTRIBUTES = words(
    """
    T mT H mH real imag
    """
)

PLAIN_METHODS = words(
    """
    item tolist size dim ndimension numel nelement stride data_ptr is_contiguous get_device storage_offset element_size
    numpy is_floating_point is_complex is_signed type untyped_storage is_pinned is_shared is_inference equal allclose
    """
)
"""Of a tensor."""

TENSOR_ONLY = words(
    """
    detach detach_ contiguous unsqueeze unsqueeze_ permute masked_fill masked_fill_ view view_as expand expand_as
    requires_grad_ is_contiguous numel nelement data_ptr element_size get_device new_zeros new_empty new_ones new_full
    new_tensor scatter scatter_ scatter_add scatter_add_ index_select index_add index_add_ index_copy_ narrow type_as
    softmax log_softmax sigmoid relu matmul bmm mm addmm addmm_ baddbmm unbind unfold is_floating_point record_stream
    retain_grad rsqrt clamp clamp_ copy_ zero_ add_ mul_ div_ sub_ ndimension storage_offset untyped_storage grad_fn is_leaf
    is_cuda is_sparse masked_select masked_scatter bfloat16 reshape_as flip rot90 tril triu logsumexp log1p expm1 square_
    sqrt_ exp_ t chunk stride
    """
)
"""Methods and attributes that neither numpy arrays nor modules have: whoever uses one has a tensor."""

OPERATIONS = TENSOR_ONLY | words(
    """
    abs add addcdiv addcmul all amax amin any argmax argmin argsort acos asin atan atan2 bernoulli bitwise_and ceil clone
    conj cos cosh cpu cross cuda cummax cumprod cumsum diag diagonal diff dist div dot double eq erf exp fill_ flatten float
    float_power floor fmod frac gather ge gt half index_fill index_put int isnan isinf lerp log log10 log2 logical_and
    logical_not logical_or long lt le max mean median min mul multiply multinomial nan_to_num ne neg negative nonzero norm
    numel outer pow prod put quantile reciprocal remainder renorm repeat repeat_interleave reshape roll round rsub select
    sign sin sinh sort split sqrt square squeeze std sub subtract sum swapaxes swapdims take tan tanh tensor_split tile to
    topk trace transpose trunc true_divide unique unflatten var where xlogy bool byte short pin_memory
    """
)

DETACHING = frozenset({"detach", "detach_", "numpy"})

NO_GRADIENT = words(
    """
    argmax argmin argsort eq ne lt le gt ge all any isnan isinf isfinite logical_and logical_or logical_not nonzero long int
    bool byte short bernoulli multinomial zeros_like ones_like empty_like full_like rand_like randn_like randint_like
    new_zeros new_ones new_empty new_full new_tensor zeros ones empty full rand randn randint randperm arange tensor
    as_tensor from_numpy linspace logspace eye one_hot bincount searchsorted bucketize normal sign floor ceil round trunc
    """
)
"""Operations whose result has no graph (or one whose gradient is nil), whatever goes in."""

PLAIN_FUNCTIONS = words(
    """
    is_tensor is_floating_point is_complex is_grad_enabled numel device dtype Size Generator get_rng_state manual_seed seed
    initial_seed set_rng_state is_storage get_default_dtype set_default_dtype finfo iinfo allclose equal is_nonzero typename
    save load compile set_grad_enabled no_grad enable_grad inference_mode autocast is_inference_mode_enabled promote_types
    result_type can_cast get_num_threads set_num_threads
    """
)

LIST_OPERATIONS = words(
    """
    cat concat concatenate stack hstack vstack dstack column_stack row_stack block_diag meshgrid broadcast_tensors einsum
    broadcast_shapes cartesian_prod chain_matmul multi_dot
    """
)
"""Operations whose first argument is not a tensor."""

PLAIN_NAMESPACES = (
    "torch.cuda.",
    "torch.distributed.",
    "torch.version.",
    "torch.backends.",
    "torch.random.",
    "torch.utils.",
    "torch.optim.",
    "torch.profiler.",
    "torch.get_autocast",
    "torch.is_autocast",
    "torch.distributions.",
    "torch.multiprocessing.",
    "torch.jit.",
    "torch.amp.",
    "torch.ops.",
    "torch._",
    "torch.library.",
)
"""Nothing is claimed about what comes from here (`torch.ops` apart, most of it is not a tensor)."""

OPERATION_NAMESPACES = ("torch.", "torch.nn.functional.", "torch.linalg.", "torch.special.", "torch.fft.", "torch.sparse.")

PLAIN_BUILTINS = words(
    """
    float int bool str len print isinstance issubclass range repr hash id type any all round format hasattr callable divmod
    ord chr input open super vars dir slice setattr delattr object bytes complex
    """
)
COLLECTING = words(
    """
    list tuple set frozenset sorted reversed dict zip enumerate iter map filter deque defaultdict OrderedDict
    """
)

MODULE_METHODS = words(
    """
    parameters named_parameters named_modules modules buffers named_buffers children named_children
    """
)
"""Only a module answers to these."""

HARMLESS = words(
    """
    print log info debug warning error write add_scalar add_scalars update set_postfix set_description append log_metric
    record log_metrics log_dict isinstance len format add put display plot tqdm
    """
)
"""Callees that may keep a tensor but never back-propagate it."""

NO_GRAD = frozenset({"torch.no_grad", "torch.inference_mode", "torch.autograd.no_grad", "torch.autograd.grad_mode.no_grad"})
ENABLE_GRAD = frozenset({"torch.enable_grad", "torch.autograd.enable_grad"})
