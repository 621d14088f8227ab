"""Where the fields of the model schema's tables lie: a listing that `schema_listing.py` wrote.

A table's fields stand in the order of their slots, each with its type as struct's code (an offset has none) and its
default unless that is 0; an enumeration's or union's members in the order of their numbers. Both are counted from 0,
and from a number that stands between them.
"""

TABLES = """
AddOptions fused_activation_function:b pot_scale_int16:?=1
ArgMaxOptions output_type:b
ArgMinOptions output_type:b
BCQFullyConnectedOptions weights_hidden_size:i fused_activation_function:b
BCQGatherOptions input_hidden_size:i axis:i
BatchMatMulOptions adjoint_lhs:? adjoint_rhs:? asymmetric_quantize_inputs:?
BidirectionalSequenceLSTMOptions fused_activation_function:b cell_clip:f proj_clip:f merge_outputs:? time_major:?=1
  asymmetric_quantize_inputs:?
BidirectionalSequenceRNNOptions time_major:? fused_activation_function:b merge_outputs:? asymmetric_quantize_inputs:?
BlockwiseQuantization scales:i zero_points:i block_size:i
BucketizeOptions boundaries
Buffer data offset:Q size:Q
CallOnceOptions init_subgraph_index:i
CallOptions subgraph:I
CastOptions in_data_type:b out_data_type:b
ConcatEmbeddingsOptions num_channels:i num_columns_per_channel embedding_dim_per_channel
ConcatenationOptions axis:i fused_activation_function:b
Conv2DOptions padding:b stride_w:i stride_h:i fused_activation_function:b dilation_w_factor:i=1 dilation_h_factor:i=1
  quantized_bias_type:b
Conv3DOptions padding:b stride_d:i stride_w:i stride_h:i fused_activation_function:b dilation_d_factor:i=1
  dilation_w_factor:i=1 dilation_h_factor:i=1
CumsumOptions exclusive:? reverse:?
CustomQuantization custom
DepthToSpaceOptions block_size:i
DepthwiseConv2DOptions padding:b stride_w:i stride_h:i depth_multiplier:i fused_activation_function:b
  dilation_w_factor:i=1 dilation_h_factor:i=1
DimensionMetadata format:b dense_size:i array_segments_type:B array_segments array_indices_type:B array_indices
DivOptions fused_activation_function:b
EmbeddingLookupSparseOptions combiner:b
FakeQuantOptions min:f max:f num_bits:i narrow_range:?
FullyConnectedOptions fused_activation_function:b weights_format:b keep_num_dims:? asymmetric_quantize_inputs:?
  quantized_bias_type:b
GRUOptions fused_activation_function:b return_sequences:? time_major:?
GatherOptions axis:i batch_dims:i
GeluOptions approximate:?
HashtableOptions table_id:i key_dtype:b value_dtype:b
IfOptions then_subgraph_index:i else_subgraph_index:i
InstanceNormOptions epsilon:f fused_activation_function:b
Int32Vector values
L2NormOptions fused_activation_function:b
LSHProjectionOptions type:b
LSTMOptions fused_activation_function:b cell_clip:f proj_clip:f kernel_type:b asymmetric_quantize_inputs:?
LeakyReluOptions alpha:f
LocalResponseNormalizationOptions radius:i bias:f alpha:f beta:f
MXQuantization axis:i
Metadata name buffer:I
MirrorPadOptions mode:b
Model version:I operator_codes subgraphs description buffers metadata_buffer metadata signature_defs
MulOptions fused_activation_function:b
OneHotOptions axis:i
Operator opcode_index:I inputs outputs builtin_options_type:B builtin_options custom_options custom_options_format:b
  mutating_variable_inputs intermediates large_custom_options_offset:Q large_custom_options_size:Q
  builtin_options2_type:B builtin_options2 debug_metadata_index:i=-1
OperatorCode deprecated_builtin_code:b custom_code version:i=1 builtin_code:i
PackOptions values_count:i axis:i
Pool2DOptions padding:b stride_w:i stride_h:i filter_width:i filter_height:i fused_activation_function:b
QuantizationParameters min max scale zero_point details_type:B details quantized_dimension:i
RNNOptions fused_activation_function:b asymmetric_quantize_inputs:?
RandomOptions seed:q seed2:q
ReduceWindowOptions reduce_function:i
ReducerOptions keep_dims:?
ReshapeOptions new_shape
ResizeBilinearOptions 2 align_corners:? half_pixel_centers:?
ResizeNearestNeighborOptions align_corners:? half_pixel_centers:?
ReverseSequenceOptions seq_dim:i batch_dim:i
RmsNormOptions epsilon:f
RoPEOptions mode:i
RunModelOptions location signature
SVDFOptions rank:i fused_activation_function:b asymmetric_quantize_inputs:?
SequenceRNNOptions time_major:? fused_activation_function:b asymmetric_quantize_inputs:?
ShapeOptions out_type:b
SignatureDef inputs outputs signature_key 4 subgraph_index:I
SkipGramOptions ngram_size:i max_skip_size:i include_all_ngrams:?
SoftmaxOptions beta:f
SpaceToDepthOptions block_size:i
SparseToDenseOptions validate_indices:?
SparsityParameters traversal_order block_map dim_metadata
SplitOptions num_splits:i
SplitVOptions num_splits:i
SqueezeOptions squeeze_dims
StableHLOCompositeOptions name decomposition_subgraph_index:i composite_attributes composite_attributes_format:b
  version:i
StablehloBroadcastInDimOptions broadcast_dimensions
StablehloCaseOptions branch_subgraph_indices
StablehloCompareOptions comparison_direction:I compare_type:I
StablehloConcatenateOptions dimension:q
StablehloConvolutionOptions window_strides padding lhs_dilation rhs_dilation window_reversal input_batch_dimension:q
  input_feature_dimension:q input_spatial_dimensions kernel_input_feature_dimension:q kernel_output_feature_dimension:q
  kernel_spatial_dimensions output_batch_dimension:q output_feature_dimension:q output_spatial_dimensions
  feature_group_count:q batch_group_count:q precision_config
StablehloCustomCallOptions call_target_name has_side_effect:? backend_config api_version:i called_computations
  custom_attributes
StablehloDotGeneralOptions lhs_batching_dimensions rhs_batching_dimensions lhs_contracting_dimensions
  rhs_contracting_dimensions precision_config
StablehloDynamicSliceOptions slice_sizes
StablehloGatherOptions offset_dims collapsed_slice_dims start_index_map index_vector_dim:q slice_sizes
  indices_are_sorted:?
StablehloIotaOptions iota_dimension:q
StablehloPadOptions edge_padding_low edge_padding_high interior_padding
StablehloReduceOptions dimensions body_subgraph_index:i
StablehloReduceWindowOptions window_dimensions window_strides base_dilations window_dilations padding
  body_subgraph_index:i
StablehloRngBitGeneratorOptions algorithm:b
StablehloScatterOptions indices_are_sorted:? update_window_dims inserted_window_dims scatter_dims_to_operand_dims
  index_vector_dim:q unique_indices:? update_computation_subgraph_index:i
StablehloSliceOptions start_indices limit_indices strides
StablehloSortOptions dimension:q is_stable:? comparator_subgraph_index:i
StablehloTransposeOptions permutation
StablehloWhileOptions cond_subgraph_index:i body_subgraph_index:i
StridedSliceOptions begin_mask:i end_mask:i ellipsis_mask:i new_axis_mask:i shrink_axis_mask:i offset:?
SubGraph tensors inputs outputs operators name 6 debug_metadata_index:i=-1
SubOptions fused_activation_function:b pot_scale_int16:?=1
Tensor shape type:b buffer:I name quantization is_variable:? sparsity shape_signature has_rank:? variant_tensors
  compression_type:b
TensorMap name tensor_index:I
TransposeConvOptions padding:b stride_w:i stride_h:i fused_activation_function:b quantized_bias_type:b
Uint16Vector values
Uint8Vector values
UnidirectionalSequenceLSTMOptions fused_activation_function:b cell_clip:f proj_clip:f time_major:?
  asymmetric_quantize_inputs:? diagonal_recurrent_tensors:?
UniqueOptions idx_out_type:b=2
UnpackOptions num:i axis:i
VarHandleOptions container shared_name
VariantSubType shape type:b has_rank:?
WhileOptions cond_subgraph_index:i body_subgraph_index:i
"""

ENUMERATIONS = """
BuiltinOperator -9 ATTENTION RUN_MODEL ROPE RMS_NORM GRU BCQ_GATHER BCQ_FULLY_CONNECTED INSTANCE_NORM 0 ADD
  AVERAGE_POOL_2D CONCATENATION CONV_2D DEPTHWISE_CONV_2D DEPTH_TO_SPACE DEQUANTIZE EMBEDDING_LOOKUP FLOOR
  FULLY_CONNECTED HASHTABLE_LOOKUP L2_NORMALIZATION L2_POOL_2D LOCAL_RESPONSE_NORMALIZATION LOGISTIC LSH_PROJECTION LSTM
  MAX_POOL_2D MUL RELU RELU_N1_TO_1 RELU6 RESHAPE RESIZE_BILINEAR RNN SOFTMAX SPACE_TO_DEPTH SVDF TANH CONCAT_EMBEDDINGS
  SKIP_GRAM CALL CUSTOM EMBEDDING_LOOKUP_SPARSE PAD UNIDIRECTIONAL_SEQUENCE_RNN GATHER BATCH_TO_SPACE_ND
  SPACE_TO_BATCH_ND TRANSPOSE MEAN SUB DIV SQUEEZE UNIDIRECTIONAL_SEQUENCE_LSTM STRIDED_SLICE BIDIRECTIONAL_SEQUENCE_RNN
  EXP TOPK_V2 SPLIT LOG_SOFTMAX DELEGATE BIDIRECTIONAL_SEQUENCE_LSTM CAST PRELU MAXIMUM ARG_MAX MINIMUM LESS NEG PADV2
  GREATER GREATER_EQUAL LESS_EQUAL SELECT SLICE SIN TRANSPOSE_CONV SPARSE_TO_DENSE TILE EXPAND_DIMS EQUAL NOT_EQUAL LOG
  SUM SQRT RSQRT SHAPE POW ARG_MIN FAKE_QUANT REDUCE_PROD REDUCE_MAX PACK LOGICAL_OR ONE_HOT LOGICAL_AND LOGICAL_NOT
  UNPACK REDUCE_MIN FLOOR_DIV REDUCE_ANY SQUARE ZEROS_LIKE FILL FLOOR_MOD RANGE RESIZE_NEAREST_NEIGHBOR LEAKY_RELU
  SQUARED_DIFFERENCE MIRROR_PAD ABS SPLIT_V UNIQUE CEIL REVERSE_V2 ADD_N GATHER_ND COS WHERE RANK ELU REVERSE_SEQUENCE
  MATRIX_DIAG QUANTIZE MATRIX_SET_DIAG ROUND HARD_SWISH IF WHILE NON_MAX_SUPPRESSION_V4 NON_MAX_SUPPRESSION_V5
  SCATTER_ND SELECT_V2 DENSIFY SEGMENT_SUM BATCH_MATMUL PLACEHOLDER_FOR_GREATER_OP_CODES CUMSUM CALL_ONCE BROADCAST_TO
  RFFT2D CONV_3D IMAG REAL COMPLEX_ABS HASHTABLE HASHTABLE_FIND HASHTABLE_IMPORT HASHTABLE_SIZE REDUCE_ALL
  CONV_3D_TRANSPOSE VAR_HANDLE READ_VARIABLE ASSIGN_VARIABLE BROADCAST_ARGS RANDOM_STANDARD_NORMAL BUCKETIZE
  RANDOM_UNIFORM MULTINOMIAL GELU DYNAMIC_UPDATE_SLICE RELU_0_TO_1 UNSORTED_SEGMENT_PROD UNSORTED_SEGMENT_MAX
  UNSORTED_SEGMENT_SUM ATAN2 UNSORTED_SEGMENT_MIN SIGN BITCAST BITWISE_XOR RIGHT_SHIFT STABLEHLO_LOGISTIC STABLEHLO_ADD
  STABLEHLO_DIVIDE STABLEHLO_MULTIPLY STABLEHLO_MAXIMUM STABLEHLO_RESHAPE STABLEHLO_CLAMP STABLEHLO_CONCATENATE
  STABLEHLO_BROADCAST_IN_DIM STABLEHLO_CONVOLUTION STABLEHLO_SLICE STABLEHLO_CUSTOM_CALL STABLEHLO_REDUCE STABLEHLO_ABS
  STABLEHLO_AND STABLEHLO_COSINE STABLEHLO_EXPONENTIAL STABLEHLO_FLOOR STABLEHLO_LOG STABLEHLO_MINIMUM STABLEHLO_NEGATE
  STABLEHLO_OR STABLEHLO_POWER STABLEHLO_REMAINDER STABLEHLO_RSQRT STABLEHLO_SELECT STABLEHLO_SUBTRACT STABLEHLO_TANH
  STABLEHLO_SCATTER STABLEHLO_COMPARE STABLEHLO_CONVERT STABLEHLO_DYNAMIC_SLICE STABLEHLO_DYNAMIC_UPDATE_SLICE
  STABLEHLO_PAD STABLEHLO_IOTA STABLEHLO_DOT_GENERAL STABLEHLO_REDUCE_WINDOW STABLEHLO_SORT STABLEHLO_WHILE
  STABLEHLO_GATHER STABLEHLO_TRANSPOSE DILATE STABLEHLO_RNG_BIT_GENERATOR REDUCE_WINDOW STABLEHLO_COMPOSITE
  STABLEHLO_SHIFT_LEFT STABLEHLO_CBRT STABLEHLO_CASE
BuiltinOptions NONE Conv2DOptions DepthwiseConv2DOptions ConcatEmbeddingsOptions LSHProjectionOptions Pool2DOptions
  SVDFOptions RNNOptions FullyConnectedOptions SoftmaxOptions ConcatenationOptions AddOptions L2NormOptions
  LocalResponseNormalizationOptions LSTMOptions ResizeBilinearOptions CallOptions ReshapeOptions SkipGramOptions
  SpaceToDepthOptions EmbeddingLookupSparseOptions MulOptions PadOptions GatherOptions BatchToSpaceNDOptions
  SpaceToBatchNDOptions TransposeOptions ReducerOptions SubOptions DivOptions SqueezeOptions SequenceRNNOptions
  StridedSliceOptions ExpOptions TopKV2Options SplitOptions LogSoftmaxOptions CastOptions DequantizeOptions
  MaximumMinimumOptions ArgMaxOptions LessOptions NegOptions PadV2Options GreaterOptions GreaterEqualOptions
  LessEqualOptions SelectOptions SliceOptions TransposeConvOptions SparseToDenseOptions TileOptions ExpandDimsOptions
  EqualOptions NotEqualOptions ShapeOptions PowOptions ArgMinOptions FakeQuantOptions PackOptions LogicalOrOptions
  OneHotOptions LogicalAndOptions LogicalNotOptions UnpackOptions FloorDivOptions SquareOptions ZerosLikeOptions
  FillOptions BidirectionalSequenceLSTMOptions BidirectionalSequenceRNNOptions UnidirectionalSequenceLSTMOptions
  FloorModOptions RangeOptions ResizeNearestNeighborOptions LeakyReluOptions SquaredDifferenceOptions MirrorPadOptions
  AbsOptions SplitVOptions UniqueOptions ReverseV2Options AddNOptions GatherNdOptions CosOptions WhereOptions
  RankOptions ReverseSequenceOptions MatrixDiagOptions QuantizeOptions MatrixSetDiagOptions HardSwishOptions IfOptions
  WhileOptions DepthToSpaceOptions NonMaxSuppressionV4Options NonMaxSuppressionV5Options ScatterNdOptions
  SelectV2Options DensifyOptions SegmentSumOptions BatchMatMulOptions CumsumOptions CallOnceOptions BroadcastToOptions
  Rfft2dOptions Conv3DOptions HashtableOptions HashtableFindOptions HashtableImportOptions HashtableSizeOptions
  VarHandleOptions ReadVariableOptions AssignVariableOptions RandomOptions BucketizeOptions GeluOptions
  DynamicUpdateSliceOptions UnsortedSegmentProdOptions UnsortedSegmentMaxOptions UnsortedSegmentMinOptions
  UnsortedSegmentSumOptions ATan2Options SignOptions BitcastOptions BitwiseXorOptions RightShiftOptions 247
  AttentionOptions RunModelOptions RoPEOptions RmsNormOptions GRUOptions BCQGatherOptions BCQFullyConnectedOptions
  InstanceNormOptions
BuiltinOptions2 NONE StablehloConcatenateOptions StablehloBroadcastInDimOptions StablehloSliceOptions
  StablehloConvolutionOptions StablehloCustomCallOptions StablehloReduceOptions StablehloScatterOptions
  StablehloCompareOptions StablehloDynamicSliceOptions StablehloPadOptions StablehloIotaOptions
  StablehloDotGeneralOptions StablehloReduceWindowOptions StablehloSortOptions StablehloWhileOptions
  StablehloGatherOptions StablehloTransposeOptions DilateOptions StablehloRngBitGeneratorOptions ReduceWindowOptions
  StableHLOCompositeOptions StablehloShiftLeftOptions StablehloCaseOptions
"""
