"""Operations: each equals the formula in its docstring, and is faster."""
