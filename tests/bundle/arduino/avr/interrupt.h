/* Nothing interrupts. */
#pragma once
#define sei()
#define cli()
