"""Results as files, without JAX: whatever is written or read goes through these files.

names         what files and folders of results are called
places        where a result may go: checked before anything is computed
atomic        the one way to write: beside the place, then there in one step
durable       the same for many files that must survive a power cut, with marks of their content
locking       one writer per place
identity      what a part belongs to
bounds        how much a result may say that it holds
own_files     plain files of our own, never links or pipes
part_names    names of the stores of finished parts
strict_json   nested data as strict JSON has it
own_store     the files of a folder as a Zarr store to read
zarr_format   Zarr as we write it and as we accept it
checksums     whether the arrays of a store are as they were written
"""
