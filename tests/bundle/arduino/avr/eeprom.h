/* What the core includes by this name is for USB. */
#pragma once
