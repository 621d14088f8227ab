/* There are no interrupts. */
#pragma once
#define sei()
#define cli()
