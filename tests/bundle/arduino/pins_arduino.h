/* A variant without pins. */
#pragma once
