// Made by ./dev ptx from kernels.cu; not to be edited.
#include "collective/gpu/kernels.h"

namespace hvd::collective::gpu {

// clang-format off
const char kKernelText[] = R"ptx(
.version 6.3
.target sm_52
.address_size 64
.visible .entry hvd_copy_1(
	.param .align 8 .b8 hvd_copy_1_param_0[3072],
	.param .align 8 .b8 hvd_copy_1_param_1[16]
)
{
	.reg .pred 	%p<3>;
	.reg .b16 	%rs<2>;
	.reg .b32 	%r<6>;
	.reg .b64 	%rd<19>;
	mov.b64 	%rd8, hvd_copy_1_param_0;
	mov.u64 	%rd9, %rd8;
	mov.u32 	%r1, %ntid.x;
	mov.u32 	%r2, %ctaid.x;
	mul.wide.s32 	%rd10, %r2, %r1;
	mov.u32 	%r3, %tid.x;
	cvt.s64.s32 	%rd11, %r3;
	add.s64 	%rd18, %rd10, %rd11;
	mov.u32 	%r5, %ctaid.y;
	mul.wide.s32 	%rd12, %r5, 24;
	add.s64 	%rd13, %rd9, %rd12;
	ld.param.u64 	%rd5, [%rd13+16];
	setp.le.u64 	%p1, %rd5, %rd18;
	@%p1 bra 	LBB0_3;
	mov.u32 	%r4, %nctaid.x;
	mul.wide.s32 	%rd2, %r1, %r4;
	ld.param.u64 	%rd14, [%rd13];
	cvta.to.global.u64 	%rd3, %rd14;
	ld.param.u64 	%rd15, [%rd13+8];
	cvta.to.global.u64 	%rd4, %rd15;
LBB0_2:
	.pragma "nounroll";
	add.s64 	%rd16, %rd3, %rd18;
	ld.global.u8 	%rs1, [%rd16];
	add.s64 	%rd17, %rd4, %rd18;
	st.global.u8 	[%rd17], %rs1;
	add.s64 	%rd18, %rd18, %rd2;
	setp.lt.u64 	%p2, %rd18, %rd5;
	@%p2 bra 	LBB0_2;
LBB0_3:
	ret;
}
.visible .entry hvd_copy_2(
	.param .align 8 .b8 hvd_copy_2_param_0[3072],
	.param .align 8 .b8 hvd_copy_2_param_1[16]
)
{
	.reg .pred 	%p<3>;
	.reg .b16 	%rs<2>;
	.reg .b32 	%r<6>;
	.reg .b64 	%rd<24>;
	mov.b64 	%rd12, hvd_copy_2_param_0;
	mov.u64 	%rd13, %rd12;
	mov.u32 	%r1, %ntid.x;
	mov.u32 	%r2, %ctaid.x;
	mul.wide.s32 	%rd14, %r2, %r1;
	mov.u32 	%r3, %tid.x;
	cvt.s64.s32 	%rd15, %r3;
	add.s64 	%rd23, %rd14, %rd15;
	mov.u32 	%r5, %ctaid.y;
	mul.wide.s32 	%rd16, %r5, 24;
	add.s64 	%rd17, %rd13, %rd16;
	ld.param.u64 	%rd5, [%rd17+16];
	setp.le.u64 	%p1, %rd5, %rd23;
	@%p1 bra 	LBB1_3;
	mov.u32 	%r4, %nctaid.x;
	mul.wide.s32 	%rd2, %r1, %r4;
	ld.param.u64 	%rd18, [%rd17];
	cvta.to.global.u64 	%rd3, %rd18;
	ld.param.u64 	%rd19, [%rd17+8];
	cvta.to.global.u64 	%rd4, %rd19;
	shl.b64 	%rd22, %rd23, 1;
	shl.b64 	%rd7, %rd2, 1;
LBB1_2:
	.pragma "nounroll";
	add.s64 	%rd20, %rd3, %rd22;
	ld.global.u16 	%rs1, [%rd20];
	add.s64 	%rd21, %rd4, %rd22;
	st.global.u16 	[%rd21], %rs1;
	add.s64 	%rd23, %rd23, %rd2;
	add.s64 	%rd22, %rd22, %rd7;
	setp.lt.u64 	%p2, %rd23, %rd5;
	@%p2 bra 	LBB1_2;
LBB1_3:
	ret;
}
.visible .entry hvd_copy_4(
	.param .align 8 .b8 hvd_copy_4_param_0[3072],
	.param .align 8 .b8 hvd_copy_4_param_1[16]
)
{
	.reg .pred 	%p<3>;
	.reg .b32 	%r<7>;
	.reg .b64 	%rd<24>;
	mov.b64 	%rd12, hvd_copy_4_param_0;
	mov.u64 	%rd13, %rd12;
	mov.u32 	%r1, %ntid.x;
	mov.u32 	%r2, %ctaid.x;
	mul.wide.s32 	%rd14, %r2, %r1;
	mov.u32 	%r3, %tid.x;
	cvt.s64.s32 	%rd15, %r3;
	add.s64 	%rd23, %rd14, %rd15;
	mov.u32 	%r5, %ctaid.y;
	mul.wide.s32 	%rd16, %r5, 24;
	add.s64 	%rd17, %rd13, %rd16;
	ld.param.u64 	%rd5, [%rd17+16];
	setp.le.u64 	%p1, %rd5, %rd23;
	@%p1 bra 	LBB2_3;
	mov.u32 	%r4, %nctaid.x;
	mul.wide.s32 	%rd2, %r1, %r4;
	ld.param.u64 	%rd18, [%rd17];
	cvta.to.global.u64 	%rd3, %rd18;
	ld.param.u64 	%rd19, [%rd17+8];
	cvta.to.global.u64 	%rd4, %rd19;
	shl.b64 	%rd22, %rd23, 2;
	shl.b64 	%rd7, %rd2, 2;
LBB2_2:
	.pragma "nounroll";
	add.s64 	%rd20, %rd3, %rd22;
	ld.global.u32 	%r6, [%rd20];
	add.s64 	%rd21, %rd4, %rd22;
	st.global.u32 	[%rd21], %r6;
	add.s64 	%rd23, %rd23, %rd2;
	add.s64 	%rd22, %rd22, %rd7;
	setp.lt.u64 	%p2, %rd23, %rd5;
	@%p2 bra 	LBB2_2;
LBB2_3:
	ret;
}
.visible .entry hvd_copy_8(
	.param .align 8 .b8 hvd_copy_8_param_0[3072],
	.param .align 8 .b8 hvd_copy_8_param_1[16]
)
{
	.reg .pred 	%p<3>;
	.reg .b32 	%r<6>;
	.reg .b64 	%rd<25>;
	mov.b64 	%rd12, hvd_copy_8_param_0;
	mov.u64 	%rd13, %rd12;
	mov.u32 	%r1, %ntid.x;
	mov.u32 	%r2, %ctaid.x;
	mul.wide.s32 	%rd14, %r2, %r1;
	mov.u32 	%r3, %tid.x;
	cvt.s64.s32 	%rd15, %r3;
	add.s64 	%rd24, %rd14, %rd15;
	mov.u32 	%r5, %ctaid.y;
	mul.wide.s32 	%rd16, %r5, 24;
	add.s64 	%rd17, %rd13, %rd16;
	ld.param.u64 	%rd5, [%rd17+16];
	setp.le.u64 	%p1, %rd5, %rd24;
	@%p1 bra 	LBB3_3;
	mov.u32 	%r4, %nctaid.x;
	mul.wide.s32 	%rd2, %r1, %r4;
	ld.param.u64 	%rd18, [%rd17];
	cvta.to.global.u64 	%rd3, %rd18;
	ld.param.u64 	%rd19, [%rd17+8];
	cvta.to.global.u64 	%rd4, %rd19;
	shl.b64 	%rd23, %rd24, 3;
	shl.b64 	%rd7, %rd2, 3;
LBB3_2:
	.pragma "nounroll";
	add.s64 	%rd20, %rd3, %rd23;
	ld.global.u64 	%rd21, [%rd20];
	add.s64 	%rd22, %rd4, %rd23;
	st.global.u64 	[%rd22], %rd21;
	add.s64 	%rd24, %rd24, %rd2;
	add.s64 	%rd23, %rd23, %rd7;
	setp.lt.u64 	%p2, %rd24, %rd5;
	@%p2 bra 	LBB3_2;
LBB3_3:
	ret;
}
.visible .entry hvd_scale_uint8(
	.param .align 8 .b8 hvd_scale_uint8_param_0[3072],
	.param .align 8 .b8 hvd_scale_uint8_param_1[16]
)
{
	.reg .pred 	%p<6>;
	.reg .b16 	%rs<2>;
	.reg .b32 	%r<7>;
	.reg .b64 	%rd<20>;
	.reg .f64 	%fd<9>;
	mov.b64 	%rd8, hvd_scale_uint8_param_0;
	mov.u64 	%rd9, %rd8;
	mov.u32 	%r1, %ntid.x;
	mov.u32 	%r2, %ctaid.x;
	mul.wide.s32 	%rd10, %r2, %r1;
	mov.u32 	%r3, %tid.x;
	cvt.s64.s32 	%rd11, %r3;
	add.s64 	%rd19, %rd10, %rd11;
	mov.u32 	%r5, %ctaid.y;
	mul.wide.s32 	%rd13, %r5, 24;
	add.s64 	%rd14, %rd9, %rd13;
	ld.param.u64 	%rd5, [%rd14+16];
	setp.le.u64 	%p1, %rd5, %rd19;
	@%p1 bra 	LBB4_3;
	mov.u32 	%r4, %nctaid.x;
	mul.wide.s32 	%rd2, %r1, %r4;
	ld.param.f64 	%fd1, [hvd_scale_uint8_param_1];
	ld.param.u64 	%rd12, [hvd_scale_uint8_param_1+8];
	cvt.rn.f64.s64 	%fd2, %rd12;
	ld.param.u64 	%rd15, [%rd14];
	cvta.to.global.u64 	%rd3, %rd15;
	ld.param.u64 	%rd16, [%rd14+8];
	cvta.to.global.u64 	%rd4, %rd16;
LBB4_2:
	.pragma "nounroll";
	add.s64 	%rd17, %rd3, %rd19;
	ld.global.u8 	%rs1, [%rd17];
	cvt.rn.f64.u16 	%fd3, %rs1;
	mul.rn.f64 	%fd4, %fd1, %fd3;
	div.rn.f64 	%fd5, %fd4, %fd2;
	setp.gt.f64 	%p2, %fd5, 0d406FE00000000000;
	selp.f64 	%fd6, 0d406FE00000000000, %fd5, %p2;
	setp.lt.f64 	%p3, %fd6, 0d0000000000000000;
	selp.f64 	%fd7, 0d0000000000000000, %fd6, %p3;
	setp.num.f64 	%p4, %fd7, %fd7;
	selp.f64 	%fd8, %fd7, 0d0000000000000000, %p4;
	cvt.rzi.s32.f64 	%r6, %fd8;
	add.s64 	%rd18, %rd4, %rd19;
	st.global.u8 	[%rd18], %r6;
	add.s64 	%rd19, %rd19, %rd2;
	setp.lt.u64 	%p5, %rd19, %rd5;
	@%p5 bra 	LBB4_2;
LBB4_3:
	ret;
}
.visible .entry hvd_scale_int8(
	.param .align 8 .b8 hvd_scale_int8_param_0[3072],
	.param .align 8 .b8 hvd_scale_int8_param_1[16]
)
{
	.reg .pred 	%p<6>;
	.reg .b16 	%rs<2>;
	.reg .b32 	%r<7>;
	.reg .b64 	%rd<20>;
	.reg .f64 	%fd<9>;
	mov.b64 	%rd8, hvd_scale_int8_param_0;
	mov.u64 	%rd9, %rd8;
	mov.u32 	%r1, %ntid.x;
	mov.u32 	%r2, %ctaid.x;
	mul.wide.s32 	%rd10, %r2, %r1;
	mov.u32 	%r3, %tid.x;
	cvt.s64.s32 	%rd11, %r3;
	add.s64 	%rd19, %rd10, %rd11;
	mov.u32 	%r5, %ctaid.y;
	mul.wide.s32 	%rd13, %r5, 24;
	add.s64 	%rd14, %rd9, %rd13;
	ld.param.u64 	%rd5, [%rd14+16];
	setp.le.u64 	%p1, %rd5, %rd19;
	@%p1 bra 	LBB5_3;
	mov.u32 	%r4, %nctaid.x;
	mul.wide.s32 	%rd2, %r1, %r4;
	ld.param.f64 	%fd1, [hvd_scale_int8_param_1];
	ld.param.u64 	%rd12, [hvd_scale_int8_param_1+8];
	cvt.rn.f64.s64 	%fd2, %rd12;
	ld.param.u64 	%rd15, [%rd14];
	cvta.to.global.u64 	%rd3, %rd15;
	ld.param.u64 	%rd16, [%rd14+8];
	cvta.to.global.u64 	%rd4, %rd16;
LBB5_2:
	.pragma "nounroll";
	add.s64 	%rd17, %rd3, %rd19;
	ld.global.s8 	%rs1, [%rd17];
	cvt.rn.f64.s16 	%fd3, %rs1;
	mul.rn.f64 	%fd4, %fd1, %fd3;
	div.rn.f64 	%fd5, %fd4, %fd2;
	setp.gt.f64 	%p2, %fd5, 0d405FC00000000000;
	selp.f64 	%fd6, 0d405FC00000000000, %fd5, %p2;
	setp.lt.f64 	%p3, %fd6, 0dC060000000000000;
	selp.f64 	%fd7, 0dC060000000000000, %fd6, %p3;
	setp.num.f64 	%p4, %fd7, %fd7;
	selp.f64 	%fd8, %fd7, 0d0000000000000000, %p4;
	cvt.rzi.s32.f64 	%r6, %fd8;
	add.s64 	%rd18, %rd4, %rd19;
	st.global.u8 	[%rd18], %r6;
	add.s64 	%rd19, %rd19, %rd2;
	setp.lt.u64 	%p5, %rd19, %rd5;
	@%p5 bra 	LBB5_2;
LBB5_3:
	ret;
}
.visible .entry hvd_scale_int32(
	.param .align 8 .b8 hvd_scale_int32_param_0[3072],
	.param .align 8 .b8 hvd_scale_int32_param_1[16]
)
{
	.reg .pred 	%p<6>;
	.reg .b32 	%r<8>;
	.reg .b64 	%rd<25>;
	.reg .f64 	%fd<9>;
	mov.b64 	%rd12, hvd_scale_int32_param_0;
	mov.u64 	%rd13, %rd12;
	mov.u32 	%r1, %ntid.x;
	mov.u32 	%r2, %ctaid.x;
	mul.wide.s32 	%rd14, %r2, %r1;
	mov.u32 	%r3, %tid.x;
	cvt.s64.s32 	%rd15, %r3;
	add.s64 	%rd24, %rd14, %rd15;
	mov.u32 	%r5, %ctaid.y;
	mul.wide.s32 	%rd17, %r5, 24;
	add.s64 	%rd18, %rd13, %rd17;
	ld.param.u64 	%rd5, [%rd18+16];
	setp.le.u64 	%p1, %rd5, %rd24;
	@%p1 bra 	LBB6_3;
	mov.u32 	%r4, %nctaid.x;
	mul.wide.s32 	%rd2, %r1, %r4;
	ld.param.f64 	%fd1, [hvd_scale_int32_param_1];
	ld.param.u64 	%rd16, [hvd_scale_int32_param_1+8];
	cvt.rn.f64.s64 	%fd2, %rd16;
	ld.param.u64 	%rd19, [%rd18];
	cvta.to.global.u64 	%rd3, %rd19;
	ld.param.u64 	%rd20, [%rd18+8];
	cvta.to.global.u64 	%rd4, %rd20;
	shl.b64 	%rd23, %rd24, 2;
	shl.b64 	%rd7, %rd2, 2;
LBB6_2:
	.pragma "nounroll";
	add.s64 	%rd21, %rd3, %rd23;
	ld.global.u32 	%r6, [%rd21];
	cvt.rn.f64.s32 	%fd3, %r6;
	mul.rn.f64 	%fd4, %fd1, %fd3;
	div.rn.f64 	%fd5, %fd4, %fd2;
	setp.gt.f64 	%p2, %fd5, 0d41DFFFFFFFC00000;
	selp.f64 	%fd6, 0d41DFFFFFFFC00000, %fd5, %p2;
	setp.lt.f64 	%p3, %fd6, 0dC1E0000000000000;
	selp.f64 	%fd7, 0dC1E0000000000000, %fd6, %p3;
	setp.num.f64 	%p4, %fd7, %fd7;
	selp.f64 	%fd8, %fd7, 0d0000000000000000, %p4;
	cvt.rzi.s32.f64 	%r7, %fd8;
	add.s64 	%rd22, %rd4, %rd23;
	st.global.u32 	[%rd22], %r7;
	add.s64 	%rd24, %rd24, %rd2;
	add.s64 	%rd23, %rd23, %rd7;
	setp.lt.u64 	%p5, %rd24, %rd5;
	@%p5 bra 	LBB6_2;
LBB6_3:
	ret;
}
.visible .entry hvd_scale_int64(
	.param .align 8 .b8 hvd_scale_int64_param_0[3072],
	.param .align 8 .b8 hvd_scale_int64_param_1[16]
)
{
	.reg .pred 	%p<8>;
	.reg .b32 	%r<9>;
	.reg .b64 	%rd<36>;
	.reg .f64 	%fd<6>;
	mov.b64 	%rd18, hvd_scale_int64_param_0;
	mov.u64 	%rd19, %rd18;
	mov.u32 	%r1, %ntid.x;
	mov.u32 	%r2, %ctaid.x;
	mul.wide.s32 	%rd20, %r2, %r1;
	mov.u32 	%r3, %tid.x;
	cvt.s64.s32 	%rd21, %r3;
	add.s64 	%rd34, %rd20, %rd21;
	mov.u32 	%r5, %ctaid.y;
	mul.wide.s32 	%rd22, %r5, 24;
	add.s64 	%rd23, %rd19, %rd22;
	ld.param.u64 	%rd6, [%rd23+16];
	setp.le.u64 	%p1, %rd6, %rd34;
	@%p1 bra 	LBB7_10;
	mov.u32 	%r4, %nctaid.x;
	mul.wide.s32 	%rd2, %r1, %r4;
	ld.param.f64 	%fd1, [hvd_scale_int64_param_1];
	ld.param.u64 	%rd3, [hvd_scale_int64_param_1+8];
	ld.param.u64 	%rd24, [%rd23];
	cvta.to.global.u64 	%rd4, %rd24;
	ld.param.u64 	%rd25, [%rd23+8];
	cvta.to.global.u64 	%rd5, %rd25;
	cvt.rn.f64.s64 	%fd2, %rd3;
	shl.b64 	%rd33, %rd34, 3;
	shl.b64 	%rd8, %rd2, 3;
	setp.neu.f64 	%p2, %fd1, 0d3FF0000000000000;
	cvt.u32.u64 	%r6, %rd3;
	bra.uni 	LBB7_2;
LBB7_5:
	div.s64 	%rd35, %rd11, %rd3;
LBB7_9:
	add.s64 	%rd32, %rd5, %rd33;
	st.global.u64 	[%rd32], %rd35;
	add.s64 	%rd34, %rd34, %rd2;
	add.s64 	%rd33, %rd33, %rd8;
	setp.lt.u64 	%p7, %rd34, %rd6;
	@%p7 bra 	LBB7_2;
	bra.uni 	LBB7_10;
LBB7_2:
	.pragma "nounroll";
	add.s64 	%rd26, %rd4, %rd33;
	ld.global.u64 	%rd11, [%rd26];
	@%p2 bra 	LBB7_6;
	or.b64  	%rd30, %rd11, %rd3;
	and.b64  	%rd31, %rd30, -4294967296;
	setp.ne.s64 	%p6, %rd31, 0;
	@%p6 bra 	LBB7_5;
	cvt.u32.u64 	%r7, %rd11;
	div.u32 	%r8, %r7, %r6;
	cvt.u64.u32 	%rd35, %r8;
	bra.uni 	LBB7_9;
LBB7_6:
	cvt.rn.f64.s64 	%fd4, %rd11;
	mul.rn.f64 	%fd5, %fd1, %fd4;
	div.rn.f64 	%fd3, %fd5, %fd2;
	setp.ge.f64 	%p3, %fd3, 0d43E0000000000000;
	mov.u64 	%rd35, 9223372036854775807;
	@%p3 bra 	LBB7_9;
	setp.lt.f64 	%p4, %fd3, 0dC3E0000000000000;
	mov.u64 	%rd35, -9223372036854775808;
	@%p4 bra 	LBB7_9;
	setp.num.f64 	%p5, %fd3, %fd3;
	cvt.rzi.s64.f64 	%rd29, %fd3;
	selp.b64 	%rd35, %rd29, 0, %p5;
	bra.uni 	LBB7_9;
LBB7_10:
	ret;
}
.visible .entry hvd_scale_float16(
	.param .align 8 .b8 hvd_scale_float16_param_0[3072],
	.param .align 8 .b8 hvd_scale_float16_param_1[16]
)
{
	.reg .pred 	%p<10>;
	.reg .b16 	%rs<5>;
	.reg .b32 	%r<34>;
	.reg .f32 	%f<8>;
	.reg .b64 	%rd<25>;
	.reg .f64 	%fd<4>;
	mov.b64 	%rd12, hvd_scale_float16_param_0;
	mov.u64 	%rd13, %rd12;
	mov.u32 	%r1, %ntid.x;
	mov.u32 	%r2, %ctaid.x;
	mul.wide.s32 	%rd14, %r2, %r1;
	mov.u32 	%r3, %tid.x;
	cvt.s64.s32 	%rd15, %r3;
	add.s64 	%rd24, %rd14, %rd15;
	mov.u32 	%r5, %ctaid.y;
	mul.wide.s32 	%rd17, %r5, 24;
	add.s64 	%rd18, %rd13, %rd17;
	ld.param.u64 	%rd5, [%rd18+16];
	setp.le.u64 	%p1, %rd5, %rd24;
	@%p1 bra 	LBB8_5;
	mov.u32 	%r4, %nctaid.x;
	mul.wide.s32 	%rd2, %r1, %r4;
	ld.param.f64 	%fd1, [hvd_scale_float16_param_1];
	ld.param.u64 	%rd16, [hvd_scale_float16_param_1+8];
	cvt.rn.f64.s64 	%fd2, %rd16;
	div.rn.f64 	%fd3, %fd1, %fd2;
	cvt.rn.f32.f64 	%f1, %fd3;
	ld.param.u64 	%rd19, [%rd18];
	cvta.to.global.u64 	%rd3, %rd19;
	ld.param.u64 	%rd20, [%rd18+8];
	cvta.to.global.u64 	%rd4, %rd20;
	shl.b64 	%rd23, %rd24, 1;
	shl.b64 	%rd7, %rd2, 1;
	setp.eq.f32 	%p2, %f1, 0f3F800000;
	bra.uni 	LBB8_2;
LBB8_4:
	add.s64 	%rd22, %rd4, %rd23;
	st.global.u16 	[%rd22], %rs4;
	add.s64 	%rd24, %rd24, %rd2;
	add.s64 	%rd23, %rd23, %rd7;
	setp.lt.u64 	%p9, %rd24, %rd5;
	@%p9 bra 	LBB8_2;
	bra.uni 	LBB8_5;
LBB8_2:
	.pragma "nounroll";
	add.s64 	%rd21, %rd3, %rd23;
	ld.global.u16 	%rs4, [%rd21];
	@%p2 bra 	LBB8_4;
	cvt.s32.s16 	%r6, %rs4;
	and.b32  	%r7, %r6, -2147483648;
	mul.wide.u16 	%r8, %rs4, 8192;
	and.b32  	%r9, %r8, 268427264;
	add.s32 	%r10, %r9, 939524096;
	add.s32 	%r11, %r9, 947912704;
	mov.b32 	%f2, %r11;
	add.rn.f32 	%f3, %f2, 0fB8800000;
	mov.b32 	%r12, %f3;
	or.b32  	%r13, %r8, 2139095040;
	setp.lt.u32 	%p3, %r9, 8388608;
	selp.b32 	%r14, %r12, %r10, %p3;
	setp.gt.u32 	%p4, %r9, 260046847;
	selp.b32 	%r15, %r13, %r14, %p4;
	setp.gt.u32 	%p5, %r9, 260046848;
	or.b32  	%r16, %r15, 4194304;
	selp.b32 	%r17, %r16, %r15, %p5;
	or.b32  	%r18, %r17, %r7;
	mov.b32 	%f4, %r18;
	mul.rn.f32 	%f5, %f1, %f4;
	mov.b32 	%r19, %f5;
	and.b32  	%r20, %r19, 2147483647;
	bfe.u32 	%r21, %r20, 13, 1;
	add.s32 	%r22, %r20, %r21;
	add.s32 	%r23, %r22, -939520001;
	shr.u32 	%r24, %r23, 13;
	mov.b32 	%f6, %r20;
	add.rn.f32 	%f7, %f6, 0f3F000000;
	mov.b32 	%r25, %f7;
	bfe.u32 	%r26, %r20, 13, 9;
	or.b32  	%r27, %r26, 32256;
	setp.lt.u32 	%p6, %r20, 947912704;
	selp.b32 	%r28, %r25, %r24, %p6;
	setp.gt.u32 	%p7, %r20, 1199570943;
	selp.b32 	%r29, 31744, %r28, %p7;
	setp.gt.u32 	%p8, %r20, 2139095040;
	selp.b32 	%r30, %r27, %r29, %p8;
	shr.u32 	%r31, %r19, 16;
	and.b32  	%r32, %r31, 32768;
	or.b32  	%r33, %r30, %r32;
	cvt.u16.u32 	%rs4, %r33;
	bra.uni 	LBB8_4;
LBB8_5:
	ret;
}
.visible .entry hvd_scale_bfloat16(
	.param .align 8 .b8 hvd_scale_bfloat16_param_0[3072],
	.param .align 8 .b8 hvd_scale_bfloat16_param_1[16]
)
{
	.reg .pred 	%p<5>;
	.reg .b16 	%rs<5>;
	.reg .b32 	%r<15>;
	.reg .f32 	%f<4>;
	.reg .b64 	%rd<25>;
	.reg .f64 	%fd<4>;
	mov.b64 	%rd12, hvd_scale_bfloat16_param_0;
	mov.u64 	%rd13, %rd12;
	mov.u32 	%r1, %ntid.x;
	mov.u32 	%r2, %ctaid.x;
	mul.wide.s32 	%rd14, %r2, %r1;
	mov.u32 	%r3, %tid.x;
	cvt.s64.s32 	%rd15, %r3;
	add.s64 	%rd24, %rd14, %rd15;
	mov.u32 	%r5, %ctaid.y;
	mul.wide.s32 	%rd17, %r5, 24;
	add.s64 	%rd18, %rd13, %rd17;
	ld.param.u64 	%rd5, [%rd18+16];
	setp.le.u64 	%p1, %rd5, %rd24;
	@%p1 bra 	LBB9_5;
	mov.u32 	%r4, %nctaid.x;
	mul.wide.s32 	%rd2, %r1, %r4;
	ld.param.f64 	%fd1, [hvd_scale_bfloat16_param_1];
	ld.param.u64 	%rd16, [hvd_scale_bfloat16_param_1+8];
	cvt.rn.f64.s64 	%fd2, %rd16;
	div.rn.f64 	%fd3, %fd1, %fd2;
	cvt.rn.f32.f64 	%f1, %fd3;
	ld.param.u64 	%rd19, [%rd18];
	cvta.to.global.u64 	%rd3, %rd19;
	ld.param.u64 	%rd20, [%rd18+8];
	cvta.to.global.u64 	%rd4, %rd20;
	shl.b64 	%rd23, %rd24, 1;
	shl.b64 	%rd7, %rd2, 1;
	setp.eq.f32 	%p2, %f1, 0f3F800000;
	bra.uni 	LBB9_2;
LBB9_4:
	add.s64 	%rd22, %rd4, %rd23;
	st.global.u16 	[%rd22], %rs4;
	add.s64 	%rd24, %rd24, %rd2;
	add.s64 	%rd23, %rd23, %rd7;
	setp.lt.u64 	%p4, %rd24, %rd5;
	@%p4 bra 	LBB9_2;
	bra.uni 	LBB9_5;
LBB9_2:
	.pragma "nounroll";
	add.s64 	%rd21, %rd3, %rd23;
	ld.global.u16 	%rs4, [%rd21];
	@%p2 bra 	LBB9_4;
	cvt.u32.u16 	%r6, %rs4;
	shl.b32 	%r7, %r6, 16;
	mov.b32 	%f2, %r7;
	mul.rn.f32 	%f3, %f1, %f2;
	mov.b32 	%r8, %f3;
	bfe.u32 	%r9, %r8, 16, 1;
	add.s32 	%r10, %r8, %r9;
	add.s32 	%r11, %r10, 32767;
	setp.nan.f32 	%p3, %f3, %f3;
	or.b32  	%r12, %r8, 4194304;
	selp.b32 	%r13, %r12, %r11, %p3;
	shr.u32 	%r14, %r13, 16;
	cvt.u16.u32 	%rs4, %r14;
	bra.uni 	LBB9_4;
LBB9_5:
	ret;
}
.visible .entry hvd_scale_float32(
	.param .align 8 .b8 hvd_scale_float32_param_0[3072],
	.param .align 8 .b8 hvd_scale_float32_param_1[16]
)
{
	.reg .pred 	%p<3>;
	.reg .b32 	%r<6>;
	.reg .f32 	%f<6>;
	.reg .b64 	%rd<25>;
	.reg .f64 	%fd<2>;
	mov.b64 	%rd12, hvd_scale_float32_param_0;
	mov.u64 	%rd13, %rd12;
	mov.u32 	%r1, %ntid.x;
	mov.u32 	%r2, %ctaid.x;
	mul.wide.s32 	%rd14, %r2, %r1;
	mov.u32 	%r3, %tid.x;
	cvt.s64.s32 	%rd15, %r3;
	add.s64 	%rd24, %rd14, %rd15;
	mov.u32 	%r5, %ctaid.y;
	mul.wide.s32 	%rd17, %r5, 24;
	add.s64 	%rd18, %rd13, %rd17;
	ld.param.u64 	%rd5, [%rd18+16];
	setp.le.u64 	%p1, %rd5, %rd24;
	@%p1 bra 	LBB10_3;
	mov.u32 	%r4, %nctaid.x;
	mul.wide.s32 	%rd2, %r1, %r4;
	ld.param.u64 	%rd16, [hvd_scale_float32_param_1+8];
	cvt.rn.f32.s64 	%f1, %rd16;
	ld.param.f64 	%fd1, [hvd_scale_float32_param_1];
	cvt.rn.f32.f64 	%f2, %fd1;
	ld.param.u64 	%rd19, [%rd18];
	cvta.to.global.u64 	%rd3, %rd19;
	ld.param.u64 	%rd20, [%rd18+8];
	cvta.to.global.u64 	%rd4, %rd20;
	shl.b64 	%rd23, %rd24, 2;
	shl.b64 	%rd7, %rd2, 2;
LBB10_2:
	.pragma "nounroll";
	add.s64 	%rd21, %rd3, %rd23;
	ld.global.f32 	%f3, [%rd21];
	div.rn.f32 	%f4, %f3, %f1;
	mul.rn.f32 	%f5, %f4, %f2;
	add.s64 	%rd22, %rd4, %rd23;
	st.global.f32 	[%rd22], %f5;
	add.s64 	%rd24, %rd24, %rd2;
	add.s64 	%rd23, %rd23, %rd7;
	setp.lt.u64 	%p2, %rd24, %rd5;
	@%p2 bra 	LBB10_2;
LBB10_3:
	ret;
}
.visible .entry hvd_scale_float64(
	.param .align 8 .b8 hvd_scale_float64_param_0[3072],
	.param .align 8 .b8 hvd_scale_float64_param_1[16]
)
{
	.reg .pred 	%p<3>;
	.reg .b32 	%r<6>;
	.reg .b64 	%rd<25>;
	.reg .f64 	%fd<6>;
	mov.b64 	%rd12, hvd_scale_float64_param_0;
	mov.u64 	%rd13, %rd12;
	mov.u32 	%r1, %ntid.x;
	mov.u32 	%r2, %ctaid.x;
	mul.wide.s32 	%rd14, %r2, %r1;
	mov.u32 	%r3, %tid.x;
	cvt.s64.s32 	%rd15, %r3;
	add.s64 	%rd24, %rd14, %rd15;
	mov.u32 	%r5, %ctaid.y;
	mul.wide.s32 	%rd17, %r5, 24;
	add.s64 	%rd18, %rd13, %rd17;
	ld.param.u64 	%rd5, [%rd18+16];
	setp.le.u64 	%p1, %rd5, %rd24;
	@%p1 bra 	LBB11_3;
	mov.u32 	%r4, %nctaid.x;
	mul.wide.s32 	%rd2, %r1, %r4;
	ld.param.u64 	%rd16, [hvd_scale_float64_param_1+8];
	cvt.rn.f64.s64 	%fd1, %rd16;
	ld.param.f64 	%fd2, [hvd_scale_float64_param_1];
	ld.param.u64 	%rd19, [%rd18];
	cvta.to.global.u64 	%rd3, %rd19;
	ld.param.u64 	%rd20, [%rd18+8];
	cvta.to.global.u64 	%rd4, %rd20;
	shl.b64 	%rd23, %rd24, 3;
	shl.b64 	%rd7, %rd2, 3;
LBB11_2:
	.pragma "nounroll";
	add.s64 	%rd21, %rd3, %rd23;
	ld.global.f64 	%fd3, [%rd21];
	div.rn.f64 	%fd4, %fd3, %fd1;
	mul.rn.f64 	%fd5, %fd2, %fd4;
	add.s64 	%rd22, %rd4, %rd23;
	st.global.f64 	[%rd22], %fd5;
	add.s64 	%rd24, %rd24, %rd2;
	add.s64 	%rd23, %rd23, %rd7;
	setp.lt.u64 	%p2, %rd24, %rd5;
	@%p2 bra 	LBB11_2;
LBB11_3:
	ret;
}
.visible .entry hvd_narrow_float16(
	.param .align 8 .b8 hvd_narrow_float16_param_0[3072],
	.param .align 8 .b8 hvd_narrow_float16_param_1[16]
)
{
	.reg .pred 	%p<6>;
	.reg .b32 	%r<21>;
	.reg .f32 	%f<6>;
	.reg .b64 	%rd<30>;
	.reg .f64 	%fd<4>;
	mov.b64 	%rd16, hvd_narrow_float16_param_0;
	mov.u64 	%rd17, %rd16;
	mov.u32 	%r1, %ntid.x;
	mov.u32 	%r2, %ctaid.x;
	mul.wide.s32 	%rd18, %r2, %r1;
	mov.u32 	%r3, %tid.x;
	cvt.s64.s32 	%rd19, %r3;
	add.s64 	%rd29, %rd18, %rd19;
	mov.u32 	%r5, %ctaid.y;
	mul.wide.s32 	%rd21, %r5, 24;
	add.s64 	%rd22, %rd17, %rd21;
	ld.param.u64 	%rd5, [%rd22+16];
	setp.le.u64 	%p1, %rd5, %rd29;
	@%p1 bra 	LBB12_3;
	mov.u32 	%r4, %nctaid.x;
	mul.wide.s32 	%rd2, %r1, %r4;
	ld.param.f64 	%fd1, [hvd_narrow_float16_param_1];
	ld.param.u64 	%rd20, [hvd_narrow_float16_param_1+8];
	cvt.rn.f64.s64 	%fd2, %rd20;
	div.rn.f64 	%fd3, %fd1, %fd2;
	cvt.rn.f32.f64 	%f1, %fd3;
	ld.param.u64 	%rd23, [%rd22];
	cvta.to.global.u64 	%rd3, %rd23;
	ld.param.u64 	%rd24, [%rd22+8];
	cvta.to.global.u64 	%rd4, %rd24;
	shl.b64 	%rd25, %rd29, 2;
	add.s64 	%rd28, %rd3, %rd25;
	shl.b64 	%rd7, %rd2, 2;
	shl.b64 	%rd26, %rd29, 1;
	add.s64 	%rd27, %rd4, %rd26;
	shl.b64 	%rd9, %rd2, 1;
LBB12_2:
	.pragma "nounroll";
	ld.global.f32 	%f2, [%rd28];
	mul.rn.f32 	%f3, %f2, %f1;
	mov.b32 	%r6, %f3;
	and.b32  	%r7, %r6, 2147483647;
	bfe.u32 	%r8, %r7, 13, 1;
	add.s32 	%r9, %r7, %r8;
	add.s32 	%r10, %r9, -939520001;
	shr.u32 	%r11, %r10, 13;
	mov.b32 	%f4, %r7;
	add.rn.f32 	%f5, %f4, 0f3F000000;
	mov.b32 	%r12, %f5;
	bfe.u32 	%r13, %r7, 13, 9;
	or.b32  	%r14, %r13, 32256;
	setp.lt.u32 	%p2, %r7, 947912704;
	selp.b32 	%r15, %r12, %r11, %p2;
	setp.gt.u32 	%p3, %r7, 1199570943;
	selp.b32 	%r16, 31744, %r15, %p3;
	setp.gt.u32 	%p4, %r7, 2139095040;
	selp.b32 	%r17, %r14, %r16, %p4;
	shr.u32 	%r18, %r6, 16;
	and.b32  	%r19, %r18, 32768;
	or.b32  	%r20, %r17, %r19;
	st.global.u16 	[%rd27], %r20;
	add.s64 	%rd29, %rd29, %rd2;
	add.s64 	%rd28, %rd28, %rd7;
	add.s64 	%rd27, %rd27, %rd9;
	setp.lt.u64 	%p5, %rd29, %rd5;
	@%p5 bra 	LBB12_2;
LBB12_3:
	ret;
}
.visible .entry hvd_narrow_bfloat16(
	.param .align 8 .b8 hvd_narrow_bfloat16_param_0[3072],
	.param .align 8 .b8 hvd_narrow_bfloat16_param_1[16]
)
{
	.reg .pred 	%p<4>;
	.reg .b32 	%r<13>;
	.reg .f32 	%f<4>;
	.reg .b64 	%rd<30>;
	.reg .f64 	%fd<4>;
	mov.b64 	%rd16, hvd_narrow_bfloat16_param_0;
	mov.u64 	%rd17, %rd16;
	mov.u32 	%r1, %ntid.x;
	mov.u32 	%r2, %ctaid.x;
	mul.wide.s32 	%rd18, %r2, %r1;
	mov.u32 	%r3, %tid.x;
	cvt.s64.s32 	%rd19, %r3;
	add.s64 	%rd29, %rd18, %rd19;
	mov.u32 	%r5, %ctaid.y;
	mul.wide.s32 	%rd21, %r5, 24;
	add.s64 	%rd22, %rd17, %rd21;
	ld.param.u64 	%rd5, [%rd22+16];
	setp.le.u64 	%p1, %rd5, %rd29;
	@%p1 bra 	LBB13_3;
	mov.u32 	%r4, %nctaid.x;
	mul.wide.s32 	%rd2, %r1, %r4;
	ld.param.f64 	%fd1, [hvd_narrow_bfloat16_param_1];
	ld.param.u64 	%rd20, [hvd_narrow_bfloat16_param_1+8];
	cvt.rn.f64.s64 	%fd2, %rd20;
	div.rn.f64 	%fd3, %fd1, %fd2;
	cvt.rn.f32.f64 	%f1, %fd3;
	ld.param.u64 	%rd23, [%rd22];
	cvta.to.global.u64 	%rd3, %rd23;
	ld.param.u64 	%rd24, [%rd22+8];
	cvta.to.global.u64 	%rd4, %rd24;
	shl.b64 	%rd25, %rd29, 2;
	add.s64 	%rd28, %rd3, %rd25;
	shl.b64 	%rd7, %rd2, 2;
	shl.b64 	%rd26, %rd29, 1;
	add.s64 	%rd27, %rd4, %rd26;
	shl.b64 	%rd9, %rd2, 1;
LBB13_2:
	.pragma "nounroll";
	ld.global.f32 	%f2, [%rd28];
	mul.rn.f32 	%f3, %f2, %f1;
	mov.b32 	%r6, %f3;
	bfe.u32 	%r7, %r6, 16, 1;
	add.s32 	%r8, %r6, %r7;
	add.s32 	%r9, %r8, 32767;
	setp.nan.f32 	%p2, %f3, %f3;
	or.b32  	%r10, %r6, 4194304;
	selp.b32 	%r11, %r10, %r9, %p2;
	shr.u32 	%r12, %r11, 16;
	st.global.u16 	[%rd27], %r12;
	add.s64 	%rd29, %rd29, %rd2;
	add.s64 	%rd28, %rd28, %rd7;
	add.s64 	%rd27, %rd27, %rd9;
	setp.lt.u64 	%p3, %rd29, %rd5;
	@%p3 bra 	LBB13_2;
LBB13_3:
	ret;
}
.visible .entry hvd_widen_float16(
	.param .align 8 .b8 hvd_widen_float16_param_0[3072],
	.param .align 8 .b8 hvd_widen_float16_param_1[16]
)
{
	.reg .pred 	%p<6>;
	.reg .b16 	%rs<2>;
	.reg .b32 	%r<19>;
	.reg .f32 	%f<6>;
	.reg .b64 	%rd<30>;
	.reg .f64 	%fd<4>;
	mov.b64 	%rd16, hvd_widen_float16_param_0;
	mov.u64 	%rd17, %rd16;
	mov.u32 	%r1, %ntid.x;
	mov.u32 	%r2, %ctaid.x;
	mul.wide.s32 	%rd18, %r2, %r1;
	mov.u32 	%r3, %tid.x;
	cvt.s64.s32 	%rd19, %r3;
	add.s64 	%rd29, %rd18, %rd19;
	mov.u32 	%r5, %ctaid.y;
	mul.wide.s32 	%rd21, %r5, 24;
	add.s64 	%rd22, %rd17, %rd21;
	ld.param.u64 	%rd5, [%rd22+16];
	setp.le.u64 	%p1, %rd5, %rd29;
	@%p1 bra 	LBB14_3;
	mov.u32 	%r4, %nctaid.x;
	mul.wide.s32 	%rd2, %r1, %r4;
	ld.param.f64 	%fd1, [hvd_widen_float16_param_1];
	ld.param.u64 	%rd20, [hvd_widen_float16_param_1+8];
	cvt.rn.f64.s64 	%fd2, %rd20;
	div.rn.f64 	%fd3, %fd1, %fd2;
	cvt.rn.f32.f64 	%f1, %fd3;
	ld.param.u64 	%rd23, [%rd22];
	cvta.to.global.u64 	%rd3, %rd23;
	ld.param.u64 	%rd24, [%rd22+8];
	cvta.to.global.u64 	%rd4, %rd24;
	shl.b64 	%rd25, %rd29, 1;
	add.s64 	%rd28, %rd3, %rd25;
	shl.b64 	%rd7, %rd2, 1;
	shl.b64 	%rd26, %rd29, 2;
	add.s64 	%rd27, %rd4, %rd26;
	shl.b64 	%rd9, %rd2, 2;
LBB14_2:
	.pragma "nounroll";
	ld.global.u16 	%rs1, [%rd28];
	cvt.s32.s16 	%r6, %rs1;
	and.b32  	%r7, %r6, -2147483648;
	mul.wide.u16 	%r8, %rs1, 8192;
	and.b32  	%r9, %r8, 268427264;
	add.s32 	%r10, %r9, 939524096;
	add.s32 	%r11, %r9, 947912704;
	mov.b32 	%f2, %r11;
	add.rn.f32 	%f3, %f2, 0fB8800000;
	mov.b32 	%r12, %f3;
	or.b32  	%r13, %r8, 2139095040;
	setp.lt.u32 	%p2, %r9, 8388608;
	selp.b32 	%r14, %r12, %r10, %p2;
	setp.gt.u32 	%p3, %r9, 260046847;
	selp.b32 	%r15, %r13, %r14, %p3;
	setp.gt.u32 	%p4, %r9, 260046848;
	or.b32  	%r16, %r15, 4194304;
	selp.b32 	%r17, %r16, %r15, %p4;
	or.b32  	%r18, %r17, %r7;
	mov.b32 	%f4, %r18;
	mul.rn.f32 	%f5, %f1, %f4;
	st.global.f32 	[%rd27], %f5;
	add.s64 	%rd29, %rd29, %rd2;
	add.s64 	%rd28, %rd28, %rd7;
	add.s64 	%rd27, %rd27, %rd9;
	setp.lt.u64 	%p5, %rd29, %rd5;
	@%p5 bra 	LBB14_2;
LBB14_3:
	ret;
}
.visible .entry hvd_widen_bfloat16(
	.param .align 8 .b8 hvd_widen_bfloat16_param_0[3072],
	.param .align 8 .b8 hvd_widen_bfloat16_param_1[16]
)
{
	.reg .pred 	%p<3>;
	.reg .b32 	%r<8>;
	.reg .f32 	%f<4>;
	.reg .b64 	%rd<30>;
	.reg .f64 	%fd<4>;
	mov.b64 	%rd16, hvd_widen_bfloat16_param_0;
	mov.u64 	%rd17, %rd16;
	mov.u32 	%r1, %ntid.x;
	mov.u32 	%r2, %ctaid.x;
	mul.wide.s32 	%rd18, %r2, %r1;
	mov.u32 	%r3, %tid.x;
	cvt.s64.s32 	%rd19, %r3;
	add.s64 	%rd29, %rd18, %rd19;
	mov.u32 	%r5, %ctaid.y;
	mul.wide.s32 	%rd21, %r5, 24;
	add.s64 	%rd22, %rd17, %rd21;
	ld.param.u64 	%rd5, [%rd22+16];
	setp.le.u64 	%p1, %rd5, %rd29;
	@%p1 bra 	LBB15_3;
	mov.u32 	%r4, %nctaid.x;
	mul.wide.s32 	%rd2, %r1, %r4;
	ld.param.f64 	%fd1, [hvd_widen_bfloat16_param_1];
	ld.param.u64 	%rd20, [hvd_widen_bfloat16_param_1+8];
	cvt.rn.f64.s64 	%fd2, %rd20;
	div.rn.f64 	%fd3, %fd1, %fd2;
	cvt.rn.f32.f64 	%f1, %fd3;
	ld.param.u64 	%rd23, [%rd22];
	cvta.to.global.u64 	%rd3, %rd23;
	ld.param.u64 	%rd24, [%rd22+8];
	cvta.to.global.u64 	%rd4, %rd24;
	shl.b64 	%rd25, %rd29, 1;
	add.s64 	%rd28, %rd3, %rd25;
	shl.b64 	%rd7, %rd2, 1;
	shl.b64 	%rd26, %rd29, 2;
	add.s64 	%rd27, %rd4, %rd26;
	shl.b64 	%rd9, %rd2, 2;
LBB15_2:
	.pragma "nounroll";
	ld.global.u16 	%r6, [%rd28];
	shl.b32 	%r7, %r6, 16;
	mov.b32 	%f2, %r7;
	mul.rn.f32 	%f3, %f1, %f2;
	st.global.f32 	[%rd27], %f3;
	add.s64 	%rd29, %rd29, %rd2;
	add.s64 	%rd28, %rd28, %rd7;
	add.s64 	%rd27, %rd27, %rd9;
	setp.lt.u64 	%p2, %rd29, %rd5;
	@%p2 bra 	LBB15_2;
LBB15_3:
	ret;
}
)ptx";
// clang-format on

}  // namespace hvd::collective::gpu
