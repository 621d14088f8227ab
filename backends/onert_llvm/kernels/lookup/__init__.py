"""Lookup kernels: decision trees and sorted keys."""
