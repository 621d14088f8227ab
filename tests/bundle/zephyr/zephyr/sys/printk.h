#pragma once
void printk(const char *text, ...);
