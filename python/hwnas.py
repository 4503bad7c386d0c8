"""hwnas for Python: hardware-aware neural architecture search and measured latencies.

One file over libhwnas by ctypes: nothing is compiled, and nothing but Python's own library is needed.
docs/python.md shows it at work; the C headers (hwnas/*.h) say of each function what it costs.

    import hwnas

    with hwnas.Space("nas_bench_macro") as space:
        network = space.network("22212220")
        print(network.macs, network.measure(seconds=0.2))

Numbers are SI: seconds, bytes, counts; accuracies are in %. What fails raises an `Error` with the
library's message, its hint and the place in your file. What has `close()` is a context manager, and is
closed when nothing refers to it any more; it belongs to one thread at a time. Ctrl-C ends a search or a
measurement; what was finished is kept in the study.
"""

from __future__ import annotations

import contextlib
import ctypes
import inspect
import json
import math
import os
import signal
import socket
import sys
import tempfile
import threading
import weakref
from pathlib import Path
from typing import (TYPE_CHECKING, Any, Callable, Dict, Iterator, List, Mapping, NamedTuple,
                    Optional, Sequence, Tuple, Type, TypeVar, Union)

if TYPE_CHECKING:
    import numpy
    import pandas

__all__ = [
    "CancelledError", "CrashedError", "DisturbedError", "Error", "Estimate", "Executable", "ExhaustedError",
    "Evaluation", "InfeasibleError", "InputError", "IOFailure", "LibraryError", "Measurement", "Measurer", "Mix",
    "Network", "NotFoundError", "OutOfMemoryError", "Predictor", "Profile", "Progress", "Report", "Rows", "SlowerError",
    "Space", "Study", "TimedOutError", "Trial", "UnsupportedError", "UsageError", "Value", "WrongResultError",
    "compare", "compare_baseline", "devices", "latency", "optimize", "optuna_objective", "plan", "profile",
    "save_page", "save_picture", "search", "set_log", "version", "versions",
]

PathLike = Union[str, "os.PathLike[str]"]

# ---- Errors ----


class Error(Exception):
    """What the library could not do. `str()` is the message with its place and hint."""

    status = ""

    def __init__(self, message: str, hint: str = "", file: str = "", line: int = 0, column: int = 0) -> None:
        place = file + (f":{line}" if line else "") + (f":{column}" if column else "")
        super().__init__((f"{place}: " if file else "") + message + (f"\nhint: {hint}" if hint else ""))
        self.message, self.hint = message, hint
        self.file, self.line, self.column = file, line, column


class UsageError(Error):
    """The call is wrong."""


class InputError(Error, ValueError):
    """A file or value that was given is wrong."""


class NotFoundError(Error, LookupError):
    """A named thing does not exist."""


class InfeasibleError(Error):
    """No network meets the constraints. After a search `study` is the file that has its trials."""

    study: Optional[str] = None


class ExhaustedError(Error):
    """No network is left."""


class CancelledError(Error):
    """Stopped on request; what was finished is kept."""


class IOFailure(Error, OSError):
    """The system refused to read or write."""


class OutOfMemoryError(Error, MemoryError):
    """Out of memory."""


class UnsupportedError(Error):
    """The device cannot do this."""


class TimedOutError(Error):
    """The process that measures did not answer in time."""


class CrashedError(Error):
    """The process that measures died."""


class LibraryError(Error):
    """A library that hwnas uses reported an error."""


class SlowerError(Error):
    """A network got slower than it was recorded."""


class WrongResultError(Error):
    """The device computes a network wrong."""


class DisturbedError(InfeasibleError):
    """The machine was too busy for measurements that tell anything."""


# In the order of hwnas_status, behind HWNAS_OK; with the names of the enumerators.
_ERRORS: List[Tuple[str, Type[Error]]] = [
    ("USAGE", UsageError),
    ("INPUT", InputError),
    ("NOT_FOUND", NotFoundError),
    ("INFEASIBLE", InfeasibleError),
    ("EXHAUSTED", ExhaustedError),
    ("INTERRUPTED", CancelledError),
    ("IO", IOFailure),
    ("MEMORY", OutOfMemoryError),
    ("UNSUPPORTED", UnsupportedError),
    ("TIMEOUT", TimedOutError),
    ("CRASHED", CrashedError),
    ("LIBRARY", LibraryError),
    ("SLOWER", SlowerError),
    ("WRONG_RESULT", WrongResultError),
    ("DISTURBED", DisturbedError),
]
_PRECISIONS = ["f32", "tf32", "bf16", "f16", "s8", "w8", "w4"]  # as hwnas_precision
_MIXINGS = ["", "mixed", "mixed-bf16"]  # as hwnas_mixing
_OPTIMIZERS = ["no_training", "sgd", "adamw"]  # as hwnas_optimizer
_FORMATS = ["text", "json", "csv", "dot", "jsonl", "markdown"]  # as hwnas_format
_LOG_LEVELS = ["warning", "info", "debug", "note"]  # as hwnas_log_level
_FILL = _ALL = -1  # HWNAS_STREAMS_FILL, HWNAS_THREADS_ALL

# ---- The C library: its structs and functions, compared with the headers by tests/python/python.bats ----

_LogFunction = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int, ctypes.c_char_p)
_PhaseFunction = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_char_p)


class _CError(ctypes.Structure):
    _fields_ = [("status", ctypes.c_int), ("message", ctypes.c_char * 1024), ("hint", ctypes.c_char * 512),
                ("file", ctypes.c_char * 256), ("line", ctypes.c_int), ("column", ctypes.c_int)]


class _CValue(ctypes.Structure):
    _fields_ = [("metric", ctypes.c_char_p), ("value", ctypes.c_double), ("low", ctypes.c_double),
                ("high", ctypes.c_double), ("unit", ctypes.c_char_p), ("source", ctypes.c_char_p)]


class _CNetworkOptions(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("batch", ctypes.c_int), ("takes_own_batch", ctypes.c_bool),
                ("shape", ctypes.c_char_p), ("n_files", ctypes.c_size_t), ("files", ctypes.c_void_p)]


class _CCosts(ctypes.Structure):
    _fields_ = [(name, ctypes.c_int64) for name in
                ("params", "macs", "weight_bytes", "activation_bytes", "peak_bytes", "layers",
                 "cache_bytes")]


class _CArrayInfo(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("type", ctypes.c_char_p), ("rank", ctypes.c_int),
                ("dims", ctypes.POINTER(ctypes.c_int64)), ("count", ctypes.c_int64)]


class _CExportOptions(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("precision", ctypes.c_int), ("is_folded", ctypes.c_bool),
                ("as_measured", ctypes.c_bool), ("note", ctypes.c_void_p)]


class _CDeviceOptions(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("threads", ctypes.c_int)]


class _CExecOptions(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("precision", ctypes.c_int), ("n_samples", ctypes.c_size_t),
                ("samples", ctypes.c_void_p), ("training", ctypes.c_int)]


class _COutputsOptions(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("devices", ctypes.c_char_p * 2), ("precisions", ctypes.c_int * 2),
                ("threads", ctypes.c_int), ("tolerance", ctypes.c_double), ("n_samples", ctypes.c_int64),
                ("cancel", ctypes.c_void_p)]


class _CEstimate(ctypes.Structure):
    _fields_ = [("mean", ctypes.c_double), ("sd", ctypes.c_double), ("is_trained", ctypes.c_bool),
                ("is_outside", ctypes.c_bool)]


class _CMeasurerOptions(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("device", ctypes.c_char_p), ("threads", ctypes.c_int),
                ("precision", ctypes.c_int), ("mode", ctypes.c_char_p), ("interval", ctypes.c_double),
                ("seconds", ctypes.c_double), ("timeout", ctypes.c_double), ("memory_limit", ctypes.c_size_t),
                ("cancel", ctypes.c_void_p), ("progress", _PhaseFunction), ("context", ctypes.c_void_p)]


class _CProgress(ctypes.Structure):
    _fields_ = [("n_done", ctypes.c_uint64), ("n_failed", ctypes.c_uint64), ("max_trials", ctypes.c_uint64),
                ("n_front", ctypes.c_size_t), ("seconds", ctypes.c_double), ("seconds_left", ctypes.c_double),
                ("winner", ctypes.c_char_p), ("phase", ctypes.c_char_p), ("trials_per_minute", ctypes.c_double),
                ("best", ctypes.c_char_p), ("seconds_left_low", ctypes.c_double),
                ("seconds_left_high", ctypes.c_double), ("measured", ctypes.c_char_p),
                ("n_measured", ctypes.c_uint64), ("n_disturbed", ctypes.c_uint64), ("front", ctypes.c_void_p)]


class _CChart(ctypes.Structure):
    _fields_ = [("text", ctypes.c_void_p), ("top", ctypes.c_int), ("left", ctypes.c_int), ("height", ctypes.c_int)]


_ProgressFunction = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.POINTER(_CProgress))


class _CJobKeyInfo(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("letter", ctypes.c_char), ("is_rare", ctypes.c_bool),
                ("argument", ctypes.c_char_p), ("help", ctypes.c_char_p)]


class _CJobFlag(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("value", ctypes.c_char_p)]


class _CSearchOptions(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("study", ctypes.c_char_p), ("resume", ctypes.c_bool),
                ("max_trials", ctypes.c_int64), ("cancel", ctypes.c_void_p), ("progress", _ProgressFunction),
                ("context", ctypes.c_void_p), ("overwrite", ctypes.c_bool), ("flags", ctypes.POINTER(_CJobFlag)),
                ("is_worker", ctypes.c_bool), ("n_workers", ctypes.c_int), ("only", ctypes.c_char_p)]


class _CStudyOptions(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("study", ctypes.c_char_p), ("resume", ctypes.c_bool),
                ("max_trials", ctypes.c_int64), ("runs_again", ctypes.c_bool), ("cancel", ctypes.c_void_p),
                ("flags", ctypes.POINTER(_CJobFlag))]


class _CStudyMix(ctypes.Structure):
    _fields_ = [("device", ctypes.c_char_p), ("floats", ctypes.c_int), ("n_layers", ctypes.c_size_t),
                ("n_s8", ctypes.c_size_t), ("layers", ctypes.c_char_p), ("error", ctypes.c_double),
                ("max_error", ctypes.c_double), ("n_samples", ctypes.c_int64),
                ("accuracy_metric", ctypes.c_char_p), ("accuracy", ctypes.c_double),
                ("f32_accuracy", ctypes.c_double), ("max_loss", ctypes.c_double)]


class _CStudyTrial(ctypes.Structure):
    _fields_ = [("number", ctypes.c_uint64), ("code", ctypes.c_char_p), ("digest", ctypes.c_char_p),
                ("batch", ctypes.c_int), ("threads", ctypes.c_int), ("precision", ctypes.c_int),
                ("is_again", ctypes.c_bool), ("n_values", ctypes.c_size_t), ("values", ctypes.POINTER(_CValue)),
                ("mixing", ctypes.c_int), ("n_mixes", ctypes.c_size_t), ("mixes", ctypes.POINTER(_CStudyMix))]


class _CExplainOptions(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("cancel", ctypes.c_void_p), ("progress", ctypes.c_void_p),
                ("context", ctypes.c_void_p)]


class _CSurveyOptions(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("refresh", ctypes.c_bool), ("cancel", ctypes.c_void_p),
                ("device", ctypes.c_char_p), ("progress", ctypes.c_void_p), ("context", ctypes.c_void_p)]


class _CDataFile(ctypes.Structure):
    _fields_ = [("input", ctypes.c_char_p), ("path", ctypes.c_char_p), ("array", ctypes.c_char_p)]


_Doubles = ctypes.POINTER(ctypes.c_double)


class _CDatasetOptions(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("labels", ctypes.c_char_p), ("label_array", ctypes.c_char_p),
                ("ignores_labels", ctypes.c_bool), ("limit", ctypes.c_int64), ("scale", ctypes.c_double),
                ("n_mean", ctypes.c_size_t), ("n_std", ctypes.c_size_t), ("mean", _Doubles), ("std", _Doubles),
                ("layout", ctypes.c_char_p), ("takes_non_finite", ctypes.c_bool)]


_Texts = ctypes.POINTER(ctypes.c_char_p)
_Ints = ctypes.POINTER(ctypes.c_int)


class _CProfileOptions(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("models", _Texts), ("n_models", ctypes.c_size_t),
                ("code", ctypes.c_char_p), ("devices", _Texts), ("n_devices", ctypes.c_size_t),
                ("batches", _Ints), ("n_batches", ctypes.c_size_t), ("threads", _Ints),
                ("n_threads", ctypes.c_size_t), ("precisions", _Ints), ("n_precisions", ctypes.c_size_t),
                ("streams", _Ints), ("n_streams", ctypes.c_size_t), ("mode", ctypes.c_char_p),
                ("priority", ctypes.c_char_p), ("interval", ctypes.c_double), ("seconds", ctypes.c_double),
                ("min_runs", ctypes.c_int), ("with_layers", ctypes.c_bool), ("verifies", ctypes.c_bool),
                ("skips", ctypes.c_bool), ("name", ctypes.c_char_p), ("save", ctypes.c_char_p),
                ("cancel", ctypes.c_void_p), ("shape", ctypes.c_char_p), ("training", ctypes.c_int),
                ("mixings", ctypes.c_uint), ("max_error", ctypes.c_double), ("samples", ctypes.c_double),
                ("epochs", ctypes.c_double), ("prices", ctypes.c_char_p), ("data", ctypes.POINTER(_CDataFile)),
                ("n_data", ctypes.c_size_t), ("data_options", ctypes.POINTER(_CDatasetOptions)),
                ("calibrate", ctypes.c_int64), ("max_loss", ctypes.c_double),
                ("progress", _PhaseFunction), ("context", ctypes.c_void_p)]


class _CRecordedProfile(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("path", ctypes.c_char_p)]


class _CCompareOptions(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("models", ctypes.POINTER(_CProfileOptions)), ("measures", ctypes.c_bool),
                ("recorded", ctypes.POINTER(_CRecordedProfile)), ("n_recorded", ctypes.c_size_t),
                ("prices", ctypes.c_char_p), ("percentile", ctypes.c_double), ("target", ctypes.c_double),
                ("load", ctypes.c_double), ("utilisation", ctypes.c_double), ("base", ctypes.c_char_p)]


class _CBaselineOptions(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("recorded", ctypes.c_char_p), ("tolerance", ctypes.c_double),
                ("models", ctypes.POINTER(_CProfileOptions))]


class _CForecastOptions(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("device", ctypes.c_char_p), ("precision", ctypes.c_int),
                ("with_steps", ctypes.c_bool)]


class _CCalibrationOptions(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("device", ctypes.c_char_p), ("threads", ctypes.c_int),
                ("batch", ctypes.c_int), ("precision", ctypes.c_int), ("seconds", ctypes.c_double),
                ("seed", ctypes.c_uint64), ("cancel", ctypes.c_void_p), ("progress", _PhaseFunction),
                ("context", ctypes.c_void_p)]


class _CTransferOptions(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("device", ctypes.c_char_p), ("threads", ctypes.c_int),
                ("batch", ctypes.c_int), ("precision", ctypes.c_int), ("from", ctypes.c_char_p),
                ("out", ctypes.c_char_p), ("n", ctypes.c_int), ("seed", ctypes.c_uint64), ("cancel", ctypes.c_void_p),
                ("progress", _PhaseFunction), ("context", ctypes.c_void_p)]


_SamplesFunction = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)


class _CEvaluationOptions(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("precision", ctypes.c_int), ("calibrate", ctypes.c_int64),
                ("task", ctypes.c_char_p), ("against", ctypes.c_void_p), ("cancel", ctypes.c_void_p),
                ("progress", _SamplesFunction), ("context", ctypes.c_void_p)]


class _COptimizeOptions(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("samples", ctypes.c_char_p), ("constraints", ctypes.c_char_p),
                ("max_loss", ctypes.c_double), ("minutes", ctypes.c_double), ("max_trials", ctypes.c_int64),
                ("device", ctypes.c_char_p), ("threads", ctypes.c_int), ("batch", ctypes.c_int),
                ("seed", ctypes.c_uint64), ("out", ctypes.c_char_p), ("resume", ctypes.c_bool),
                ("overwrite", ctypes.c_bool), ("cancel", ctypes.c_void_p), ("progress", _ProgressFunction),
                ("context", ctypes.c_void_p), ("precisions", ctypes.c_char_p), ("with_resolution", ctypes.c_bool)]


_STRUCTS: Dict[str, Type[ctypes.Structure]] = {
    "hwnas_error": _CError, "hwnas_metric_value": _CValue, "hwnas_network_options": _CNetworkOptions,
    "hwnas_costs": _CCosts, "hwnas_array_info": _CArrayInfo, "hwnas_export_options": _CExportOptions,
    "hwnas_device_options": _CDeviceOptions, "hwnas_exec_options": _CExecOptions, "hwnas_estimate": _CEstimate,
    "hwnas_measurer_options": _CMeasurerOptions, "hwnas_search_progress": _CProgress, "hwnas_chart": _CChart,
    "hwnas_job_key_info": _CJobKeyInfo, "hwnas_job_flag": _CJobFlag, "hwnas_search_options": _CSearchOptions,
    "hwnas_study_options": _CStudyOptions, "hwnas_study_trial": _CStudyTrial,
    "hwnas_study_mix": _CStudyMix, "hwnas_explain_options": _CExplainOptions,
    "hwnas_survey_options": _CSurveyOptions, "hwnas_profile_options": _CProfileOptions,
    "hwnas_recorded_profile": _CRecordedProfile, "hwnas_compare_options": _CCompareOptions,
    "hwnas_baseline_options": _CBaselineOptions, "hwnas_forecast_options": _CForecastOptions,
    "hwnas_calibration_options": _CCalibrationOptions, "hwnas_transfer_options": _CTransferOptions,
    "hwnas_data_file": _CDataFile, "hwnas_dataset_options": _CDatasetOptions,
    "hwnas_evaluation_options": _CEvaluationOptions, "hwnas_optimize_options": _COptimizeOptions,
}
_ENUMERATORS: Dict[str, int] = {
    **{f"HWNAS_E_{name}": i + 1 for i, (name, _) in enumerate(_ERRORS)},
    "HWNAS_N_STATUS": len(_ERRORS) + 1,
    **{f"HWNAS_{name.upper()}": i for i, name in enumerate(_PRECISIONS)},
    "HWNAS_N_PRECISIONS": len(_PRECISIONS),
    **{f"HWNAS_{name.upper().replace('-', '_') or 'UNMIXED'}": i for i, name in enumerate(_MIXINGS)},
    "HWNAS_N_MIXINGS": len(_MIXINGS),
    **{f"HWNAS_{name.upper()}": i for i, name in enumerate(_OPTIMIZERS)},
    "HWNAS_N_OPTIMIZERS": len(_OPTIMIZERS),
    **{f"HWNAS_{name.upper()}": i for i, name in enumerate(_FORMATS)},
    "HWNAS_N_FORMATS": len(_FORMATS),
    **{f"HWNAS_LOG_{name.upper()}": i for i, name in enumerate(_LOG_LEVELS)},
    "HWNAS_STREAMS_FILL": _FILL,
    "HWNAS_THREADS_ALL": _ALL,
}


class _Status(ctypes.c_int):
    """A result that is checked: what is not HWNAS_OK is raised."""


_P, _S, _I, _B = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int, ctypes.c_bool
_Z, _L, _U, _D = ctypes.c_size_t, ctypes.c_int64, ctypes.c_uint64, ctypes.c_double
_FUNCTIONS: Dict[str, Tuple[Any, ...]] = {  # what a function returns, and what it takes
    "hwnas_last_error": (ctypes.POINTER(_CError),),
    "hwnas_set_log": (None, _LogFunction, _P),
    "hwnas_status_name": (_S, _I),
    "hwnas_version": (_S,),
    "hwnas_free": (None, _P),
    "hwnas_report_write": (_Status, _P, _P, _I),
    "hwnas_report_conclude": (_Status, _P),
    "hwnas_report_note": (_S, _P, _Z),
    "hwnas_report_file": (_S, _P, _Z, _P),
    "hwnas_report_free": (None, _P),
    "hwnas_library_versions": (_Status, _P),
    "hwnas_nearest": (_S, _S, _Texts),
    "hwnas_space_open": (_Status, _P, _S),
    "hwnas_space_close": (None, _P),
    "hwnas_space_name": (_S, _P),
    "hwnas_space_about": (_S, _P),
    "hwnas_space_count": (_P, _P, _P),
    "hwnas_space_sample": (_Status, _P, _P, _U, _U),
    "hwnas_space_next": (_Status, _P, _P, _S),
    "hwnas_space_mutate": (_Status, _P, _P, _S, _D, _U, _U),
    "hwnas_space_check": (_Status, _P, _P, _S),
    "hwnas_space_report": (_Status, _P, _P),
    "hwnas_network_open": (_Status, _P, _S, _S, _P),
    "hwnas_network_open_in": (_Status, _P, _P, _S, _P),
    "hwnas_network_open_trial": (_Status, _P, _S, _L, _P),
    "hwnas_network_close": (None, _P),
    "hwnas_network_code": (_S, _P),
    "hwnas_network_digest": (_S, _P),
    "hwnas_network_costs": (ctypes.POINTER(_CCosts), _P),
    "hwnas_network_input": (ctypes.POINTER(_CArrayInfo), _P, _Z),
    "hwnas_network_output": (ctypes.POINTER(_CArrayInfo), _P, _Z),
    "hwnas_network_report": (_Status, _P, _P),
    "hwnas_network_export": (_Status, _P, _S, _S, _P),
    "hwnas_device_open": (_Status, _P, _S, _P),
    "hwnas_device_close": (None, _P),
    "hwnas_network_compile": (_Status, _P, _P, _P, _P),
    "hwnas_exec_run": (_Status, _P, _P, _P),
    "hwnas_exec_free": (None, _P),
    "hwnas_predictor_open": (_Status, _P, _S, _P),
    "hwnas_predictor_close": (None, _P),
    "hwnas_predictor_target": (_S, _P),
    "hwnas_predictor_unit": (_S, _P),
    "hwnas_predictor_stop_on": (None, _P, _P),
    "hwnas_predictor_score_codes": (_Status, _P, _P, _Texts, _Z),
    "hwnas_measurer_open": (_Status, _P, _P),
    "hwnas_measurer_close": (None, _P),
    "hwnas_measurer_measure": (_Status, _P, _P, _P),
    "hwnas_result_free": (None, _P),
    "hwnas_result_value": (ctypes.POINTER(_CValue), _P, _Z),
    "hwnas_result_doubt": (_S, _P),
    "hwnas_result_json": (_Status, _P, _P),
    "hwnas_job_key_list": (_B, _P, _Z),
    "hwnas_search": (_Status, _P, _S, _P),
    "hwnas_search_join": (_Status, _P, _S, _P),
    "hwnas_search_plan": (_Status, _P, _S, _P),
    "hwnas_study_open": (_Status, _P, _S, _P),
    "hwnas_study_read": (_Status, _P, _S),
    "hwnas_study_close": (None, _P),
    "hwnas_study_ask": (_Status, _P, _P),
    "hwnas_study_tell": (_Status, _P, _U, _P, _Z),
    "hwnas_study_tell_failure": (_Status, _P, _U, _I, _S),
    "hwnas_study_front": (_Status, _P, _P, _P, _Z),
    "hwnas_study_set_constraints": (None, _P, _S),
    "hwnas_study_report": (_Status, _P, _P),
    "hwnas_study_trials": (_Status, _P, _P),
    "hwnas_study_explain": (_Status, _P, _P, _L),
    "hwnas_study_explain_measured": (_Status, _P, _P, _L, _P),
    "hwnas_study_chart": (_Status, _P, _P),
    "hwnas_study_environment": (_Status, _P, _P),
    "hwnas_studies_list": (_Status, _P, _S),
    "hwnas_studies_merge": (_Status, _P, _P, _Z, _S),
    "hwnas_study_vacuum": (_Status, _P, _S),
    "hwnas_page_of_study": (_Status, _P, _P),
    "hwnas_page_save": (_Status, _P, _S),
    "hwnas_page_picture": (_Status, _P, _P, _S),
    "hwnas_devices_survey": (_Status, _P, _P),
    "hwnas_models_profile": (_Status, _P, _P),
    "hwnas_page_open": (_Status, _P, _S),
    "hwnas_page_add": (_Status, _P, _S),
    "hwnas_page_save_picture": (_Status, _P, _S, _S),
    "hwnas_page_save_png": (_Status, _P, _S, _S),
    "hwnas_compare": (_Status, _P, _P),
    "hwnas_compare_baseline": (_Status, _P, _P),
    "hwnas_network_forecast": (_Status, _P, _P, _P),
    "hwnas_compare_outputs": (_Status, _P, _P, _P, _P, _P),
    "hwnas_space_calibrate": (_Status, _P, _P, _P),
    "hwnas_space_transfer": (_Status, _P, _P, _P),
    "hwnas_dataset_open": (_Status, _P, _P, _Z, _P, _P),
    "hwnas_dataset_close": (None, _P),
    "hwnas_dataset_evaluate": (_Status, _P, _P, _P, _P, _P),
    "hwnas_evaluation_free": (None, _P),
    "hwnas_evaluation_value": (ctypes.POINTER(_CValue), _P, _Z),
    "hwnas_evaluation_samples": (_L, _P),
    "hwnas_evaluation_task": (_S, _P),
    "hwnas_evaluation_report": (_Status, _P, _P),
    "hwnas_optimize": (_Status, _P, _S, _P),
}


def _library_file() -> str:
    """libhwnas.so beside this file, as in an installation that was moved, or in a source tree."""
    named = os.environ.get("HWNAS_LIBRARY")
    if named:
        return named
    here = Path(__file__).resolve()
    built = here.parent.parent / "build" / "libhwnas.so.0"
    folders = here.parents[2:3]  # lib/ of lib/python3/dist-packages/hwnas.py
    installed = [f for folder in folders for p in ("libhwnas.so.0", "*/libhwnas.so.0") for f in folder.glob(p)]
    for candidate in [built] + sorted(installed):
        if candidate.exists():
            return str(candidate)
    return "libhwnas.so.0"  # where the loader looks


def _raise(error: _CError) -> None:
    number = error.status
    kind = _ERRORS[number - 1][1] if 0 < number <= len(_ERRORS) else Error

    def text(field: bytes) -> str:
        return field.decode("utf-8", "replace")

    made = kind(text(error.message), text(error.hint), text(error.file), error.line, error.column)
    made.status = _lib.hwnas_status_name(number).decode()
    raise made


def _checked(status: int, function: Any, arguments: Any) -> int:
    if status != 0:
        _raise(_lib.hwnas_last_error().contents)
    return status


def _load() -> ctypes.CDLL:
    file = _library_file()
    try:
        library = ctypes.CDLL(file)
        for name, (result, *arguments) in _FUNCTIONS.items():
            function = getattr(library, name)
            function.argtypes = arguments
            function.restype = ctypes.c_int if result is _Status else result
            if result is _Status:
                function.errcheck = _checked
    except (OSError, AttributeError) as e:
        raise ImportError(f"hwnas needs libhwnas.so of the same version: {e}\n"
                          "hint: `make install` puts both down; $HWNAS_LIBRARY may name the library") from e
    return library


_lib = _load()

# ---- Helpers ----


def _bytes(text: PathLike) -> bytes:
    """TypeError: it is no text, None neither, which the library would take for an address."""
    raw = os.fsencode(os.fspath(text))
    if b"\0" in raw:
        raise InputError("a text has a zero byte in it")
    return raw


def _maybe(text: Optional[PathLike]) -> Optional[bytes]:
    """Of what may be left out."""
    return None if text is None else _bytes(text)


def _str(raw: Optional[bytes]) -> str:
    return raw.decode("utf-8", "replace") if raw is not None else ""


def _take(pointer: Any) -> str:
    """A text that the library gave."""
    raw = ctypes.cast(pointer, ctypes.c_char_p).value
    _lib.hwnas_free(pointer)
    return _str(raw)


def _options(kind: Type[ctypes.Structure], **fields: Any) -> Any:
    """A struct of options that knows its size; None is the default of a field."""
    made = kind(size=ctypes.sizeof(kind))
    for name, value in fields.items():
        if value is not None:
            setattr(made, name, value)
    return made


def _samples(data: Union[None, PathLike, Mapping[str, PathLike]], labels: Optional[PathLike], limit: int, scale: float,
             mean: Sequence[float], std: Sequence[float], layout: Optional[str]) -> Any:
    """Files of samples as an array, and how they are read."""
    named: List[Any] = list(data.items()) if isinstance(data, Mapping) else [(None, path) for path in _list(data)]
    rows: List[Any] = [(_maybe(name), _bytes(path), None) for name, path in named]
    numbers = {key: (ctypes.c_double * max(len(value), 1))(*value) for key, value in (("mean", mean), ("std", std))}
    return (_CDataFile * len(rows))(*rows), _options(
        _CDatasetOptions, labels=_maybe(labels), limit=limit, scale=scale, n_mean=len(mean), n_std=len(std),
        layout=_maybe(layout), **{key: ctypes.cast(value, _Doubles) for key, value in numbers.items()})


def _precision(name: str) -> int:
    if name not in _PRECISIONS:
        raise InputError(f"there is no precision '{name}'", f"there are {', '.join(_PRECISIONS)}")
    return _PRECISIONS.index(name)


def _optimizer(name: Optional[str]) -> int:
    if name is None:
        return 0
    if name not in _OPTIMIZERS[1:]:
        raise InputError(f"there is no optimizer '{name}'", f"there are {', '.join(_OPTIMIZERS[1:])}")
    return _OPTIMIZERS.index(name)


def _list(value: Any) -> List[Any]:
    """One thing or several, as a list."""
    if value is None:
        return []
    return [value] if isinstance(value, (str, int, os.PathLike)) else list(value)


def _number(x: float) -> Optional[float]:
    return None if math.isnan(x) else x


class _Guard:
    """Runs long work so that Ctrl-C, or an exception in a callback, ends it soon.

    While C code runs, Python's handlers of signals wait. But Python writes the number of a signal
    into a file at once, where a thread reads it and sets the flag that the library looks at.
    Meanwhile KeyboardInterrupt is not raised, as in a callback it could come where nobody catches
    it, but at the end.
    """

    def __init__(self) -> None:
        self.flag = ctypes.c_int(0)
        self.address = ctypes.addressof(self.flag)
        self.error: Optional[BaseException] = None
        self.is_interrupted = False
        self._stack: Optional[contextlib.ExitStack] = None

    def call(self, function: Callable[..., Any], *arguments: Any) -> None:
        """For callbacks: an exception must not pass through C."""
        try:
            if self.error is None:
                function(*arguments)
        except BaseException as e:  # also KeyboardInterrupt
            self.error = e
            self.flag.value = 1

    def _watch(self, reader: socket.socket, before: int) -> None:
        while True:
            numbers = reader.recv(64)
            if not numbers:
                return
            if signal.SIGINT in numbers:
                self.is_interrupted = True
                self.flag.value = 1
            if before >= 0:
                with contextlib.suppress(OSError):
                    os.write(before, numbers)

    def __enter__(self) -> "_Guard":
        self.flag.value = 0
        self.error = None
        self.is_interrupted = False
        self._stack = contextlib.ExitStack()
        if threading.current_thread() is not threading.main_thread():
            return self
        reader, writer = socket.socketpair()
        writer.setblocking(False)
        before = signal.set_wakeup_fd(writer.fileno(), warn_on_full_buffer=False)
        thread = threading.Thread(target=self._watch, args=(reader, before), daemon=True)
        self._stack.callback(reader.close)
        self._stack.callback(thread.join)
        self._stack.callback(writer.close)
        self._stack.callback(signal.set_wakeup_fd, before)
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            self._stack.callback(signal.signal, signal.SIGINT, signal.default_int_handler)
            signal.signal(signal.SIGINT, lambda number, frame: None)
        thread.start()
        return self

    def __exit__(self, kind: Any, value: Any, trace: Any) -> None:
        assert self._stack
        self._stack.close()
        if self.error is not None:
            raise self.error from None
        if self.is_interrupted and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            raise KeyboardInterrupt from None


_H = TypeVar("_H", bound="_Handle")


class _Handle:
    """What the library opened. Closing it closes first what was opened with it."""

    _free_name = ""

    def __init__(self, pointer: Any, parent: Optional["_Handle"] = None) -> None:
        self._pointer = pointer
        self._parent = parent  # stays open as long as this is
        self._children: "weakref.WeakSet[_Handle]" = weakref.WeakSet()
        if parent is not None:
            parent._children.add(self)

    @property
    def _handle(self) -> Any:
        if not self._pointer:
            raise UsageError(f"this {type(self).__name__} is closed")
        return self._pointer

    def close(self) -> None:
        if not getattr(self, "_pointer", None):
            return
        for child in list(self._children):
            child.close()
        pointer, self._pointer = self._pointer, None
        getattr(_lib, self._free_name)(pointer)

    def __enter__(self: _H) -> _H:
        return self

    def __exit__(self, *exception: Any) -> None:
        self.close()

    def __del__(self) -> None:
        with contextlib.suppress(Exception):  # the interpreter ends
            self.close()


def set_log(function: Optional[Callable[[str, str], None]]) -> None:
    """Calls `function(level, line)` with what the library has to tell besides: "warning", "note",
    "info", "debug". None: nobody is told, as at first."""
    global _log

    def tell(context: Any, level: int, line: bytes) -> None:
        assert function
        function(_LOG_LEVELS[level], _str(line))

    kept = _log  # until the library has the new one
    _log = _LogFunction(tell) if function else _nobody()
    _lib.hwnas_set_log(_log, None)
    del kept


def _nobody() -> Any:
    return ctypes.cast(ctypes.c_void_p(), _LogFunction)


_log = _nobody()


def version() -> str:
    """The version of the library: "0.1.0"."""
    return _str(_lib.hwnas_version())


# ---- Values, rows, reports ----


class Value(NamedTuple):
    """A value of a metric, in its SI unit. `low` and `high` are its interval; None: it has none."""

    value: float
    low: Optional[float] = None
    high: Optional[float] = None
    unit: str = ""
    source: str = ""

    def __float__(self) -> float:
        return self.value


def _values(raw: Any, n: int) -> Dict[str, Value]:
    return {_str(v.metric): Value(v.value, _number(v.low), _number(v.high), _str(v.unit), _str(v.source))
            for v in (raw[i] for i in range(n))}


class Rows(List[Dict[str, Any]]):
    """A list of dicts: a table. Metrics are SI; "METRIC low" and "METRIC high" are intervals."""

    def to_frame(self) -> "pandas.DataFrame":
        """The table for pandas (Debian: python3-pandas)."""
        import pandas
        return pandas.DataFrame(list(self))


def _flat(values: Mapping[str, Value]) -> Dict[str, Any]:
    row: Dict[str, Any] = {}
    for name, v in values.items():
        row[name] = v.value
        if v.low is not None and v.high is not None:
            row[f"{name} low"], row[f"{name} high"] = v.low, v.high
    return row


class Report(_Handle):
    """What a larger function found, for people (`str()`) and for programs (`data()`, docs/json.md)."""

    _free_name = "hwnas_report_free"

    def _write(self, form: str) -> str:
        out = ctypes.c_void_p()
        _lib.hwnas_report_write(ctypes.byref(out), self._handle, _FORMATS.index(form))
        return _take(out)

    def __str__(self) -> str:
        return self._write("text")

    def data(self) -> Dict[str, Any]:
        """What `--json` of the program prints."""
        made: Dict[str, Any] = json.loads(self._write("json"))
        return made

    def csv(self) -> str:
        return self._write("csv")

    @property
    def notes(self) -> List[str]:
        """What the user should know besides."""
        return _until_null(lambda i: _lib.hwnas_report_note(self._handle, i))

    @property
    def files(self) -> List[str]:
        """Files that were written."""
        return _until_null(lambda i: _lib.hwnas_report_file(self._handle, i, None))

    def conclude(self) -> None:
        """Raises what kept the work from its end, if anything did."""
        _lib.hwnas_report_conclude(self._handle)


def _until_null(get: Callable[[int], Any]) -> List[str]:
    found: List[str] = []
    while True:
        text = get(len(found))
        if text is None:
            return found
        found.append(_str(text))


def _report(function: Any, *arguments: Any, parent: Optional[_Handle] = None,
            kind: Type[Report] = Report) -> Any:
    out = ctypes.c_void_p()
    function(ctypes.byref(out), *arguments)
    return kind(out, parent)


def versions() -> Dict[str, Any]:
    """The versions of hwnas and of the libraries that it uses."""
    with _report(_lib.hwnas_library_versions) as report:
        found: Dict[str, Any] = report.data()
    return found


# ---- Spaces and networks ----


def _words_function(guard: _Guard, progress: Optional[Callable[[str], None]]) -> Any:
    return _PhaseFunction(lambda context, words: guard.call(progress or (lambda words: None), _str(words)))


class Space(_Handle):
    """A family of networks: a YAML file, the name of one that ships, or NAME:KEY=VALUE."""

    _free_name = "hwnas_space_close"

    def __init__(self, name: PathLike) -> None:
        out = ctypes.c_void_p()
        _lib.hwnas_space_open(ctypes.byref(out), _bytes(name))
        super().__init__(out)

    @property
    def name(self) -> str:
        return _str(_lib.hwnas_space_name(self._handle))

    @property
    def about(self) -> str:
        return _str(_lib.hwnas_space_about(self._handle))

    @property
    def count(self) -> int:
        """How many encodings there are; an upper bound where they cannot be counted."""
        return int(_take(_lib.hwnas_space_count(self._handle, None)))

    def report(self) -> Report:
        made: Report = _report(_lib.hwnas_space_report, self._handle, parent=self)
        return made

    @property
    def choices(self) -> Dict[str, List[List[str]]]:
        """What is open: by name a list of labels for each position."""
        return {c["name"]: c["positions"] for c in self.report().data()["choices"]}

    def join(self, labels: Mapping[str, Sequence[str]]) -> str:
        """The code of these labels, one for each position of each choice."""
        choices = self.report().data()["choices"]
        parts = [c["separator"].join(labels[c["name"]]) for c in choices]
        named = [f"{c['name']}={part}" for c, part in zip(choices, parts)]
        return self.check(parts[0] if len(parts) == 1 else ",".join(named))

    def check(self, code: str) -> str:
        """The code as the library spells it; InputError where it is none of the space."""
        return self._code(_lib.hwnas_space_check, _bytes(code))

    def sample(self, n: int, seed: int = 0) -> List[str]:
        """Codes of random networks, uniform over the encodings; repetitions are possible."""
        return [self._code(_lib.hwnas_space_sample, seed, i) for i in range(n)]

    def mutate(self, code: str, rate: float = 0.1, seed: int = 0, index: int = 0) -> str:
        """Another network near to `code`."""
        return self._code(_lib.hwnas_space_mutate, _bytes(code), rate, seed, index)

    def __iter__(self) -> Iterator[str]:
        """Each code once."""
        code: Optional[str] = None
        while True:
            try:
                code = self._code(_lib.hwnas_space_next, _maybe(code))
            except ExhaustedError:
                return
            yield code

    def network(self, code: Optional[str] = None, batch: int = 1) -> "Network":
        out = ctypes.c_void_p()
        options = _options(_CNetworkOptions, batch=batch)
        _lib.hwnas_network_open_in(ctypes.byref(out), self._handle, _maybe(code), ctypes.byref(options))
        return Network._of(out, self)

    def calibrate(self, *, device: str = "cpu", threads: int = 1, batch: int = 1, precision: str = "f32",
                  seconds: float = 300, seed: int = 0, progress: Optional[Callable[[str], None]] = None) -> Report:
        """Teaches the table of latencies on purpose, so that searches can estimate without a run
        (docs/latency-table.md). What was measured before Ctrl-C is kept. `threads` 0: all cores."""
        guard = _Guard()
        function = _words_function(guard, progress)
        options = _options(_CCalibrationOptions, device=_maybe(device), threads=threads, batch=batch,
                           precision=_precision(precision), seconds=seconds, seed=seed, cancel=guard.address,
                           progress=function)
        with guard:
            made: Report = _report(_lib.hwnas_space_calibrate, self._handle, ctypes.byref(options), parent=self)
        return made

    def transfer(self, table: PathLike, *, device: str = "cpu", threads: int = 1, batch: int = 1,
                 precision: str = "f32", out: Optional[PathLike] = None, n: int = 10, seed: int = 0,
                 progress: Optional[Callable[[str], None]] = None) -> Report:
        """Carries a CSV of latencies on other devices over to this one, by measuring `n` networks."""
        guard = _Guard()
        function = _words_function(guard, progress)
        options = _options(_CTransferOptions, device=_maybe(device), threads=threads, batch=batch,
                           precision=_precision(precision), out=_maybe(out), n=n, seed=seed, cancel=guard.address,
                           progress=function, **{"from": _bytes(table)})
        with guard:
            made: Report = _report(_lib.hwnas_space_transfer, self._handle, ctypes.byref(options), parent=self)
        return made

    def suggest(self, trial: Any) -> str:
        """The code that a trial of Optuna chooses: a categorical value for each position. What misses
        a constraint of the space is pruned."""
        labels = {name: [trial.suggest_categorical(f"{name}[{i}]", position) if len(position) > 1 else position[0]
                         for i, position in enumerate(positions)] for name, positions in self.choices.items()}
        try:
            return self.join(labels)
        except InputError as e:
            import optuna
            raise optuna.TrialPruned(e.message) from e

    def _code(self, function: Any, *arguments: Any) -> str:
        out = ctypes.c_void_p()
        function(ctypes.byref(out), self._handle, *arguments)
        return _take(out)


class Array(NamedTuple):
    """An input or an output of a network."""

    name: str
    type: str
    shape: Tuple[int, ...]


class Network(_Handle):
    """One network: of a space that ships or of the zoo ("resnet50"), or of an ONNX file.

    `batch`: None takes that of an ONNX file where it is fixed. `shape`: dimensions that an ONNX file
    leaves open, by the input, "ids=1x128", or by their names, "sequence_length=128".
    """

    _free_name = "hwnas_network_close"

    def __init__(self, name: PathLike, code: Optional[str] = None, batch: Optional[int] = None,
                 shape: Optional[str] = None) -> None:
        out = ctypes.c_void_p()
        options = _options(_CNetworkOptions, batch=batch, takes_own_batch=batch is None, shape=_maybe(shape))
        _lib.hwnas_network_open(ctypes.byref(out), _bytes(name), _maybe(code), ctypes.byref(options))
        super().__init__(out)

    @classmethod
    def _of(cls, pointer: Any, parent: Optional[_Handle]) -> "Network":
        made = cls.__new__(cls)
        _Handle.__init__(made, pointer, parent)
        return made

    @classmethod
    def of_trial(cls, study: PathLike, trial: int = -1) -> "Network":
        """The network of a trial of a study, which may still run; -1: of the winner."""
        out = ctypes.c_void_p()
        _lib.hwnas_network_open_trial(ctypes.byref(out), _bytes(study), trial, None)
        return cls._of(out, None)

    @property
    def code(self) -> Optional[str]:
        """None: of an ONNX file."""
        raw = _lib.hwnas_network_code(self._handle)
        return None if raw is None else _str(raw)

    @property
    def digest(self) -> str:
        """Codes of one digest are one network."""
        return _str(_lib.hwnas_network_digest(self._handle))

    @property
    def costs(self) -> Dict[str, int]:
        """params, macs, weight_bytes, activation_bytes, peak_bytes, layers, cache_bytes: of all the batch."""
        raw = _lib.hwnas_network_costs(self._handle).contents
        return {name: getattr(raw, name) for name, _ in _CCosts._fields_}

    @property
    def params(self) -> int:
        return self.costs["params"]

    @property
    def macs(self) -> int:
        return self.costs["macs"]

    @property
    def inputs(self) -> List[Array]:
        return self._arrays(_lib.hwnas_network_input)

    @property
    def outputs(self) -> List[Array]:
        return self._arrays(_lib.hwnas_network_output)

    def _arrays(self, get: Any) -> List[Array]:
        found: List[Array] = []
        while True:
            raw = get(self._handle, len(found))
            if not raw:
                return found
            info = raw.contents
            found.append(Array(_str(info.name), _str(info.type), tuple(info.dims[: info.rank])))

    def report(self) -> Report:
        """Layers, shapes, parameters, MACs, memory."""
        made: Report = _report(_lib.hwnas_network_report, self._handle, parent=self)
        return made

    def export(self, path: PathLike, format: Optional[str] = None, precision: str = "f32",
               folded: bool = False) -> Optional[str]:
        """Writes "onnx", "pytorch" or "yaml", by default as the name ends (.onnx, .py, .yaml).
        Returns what should be known of the file."""
        kinds = {".onnx": "onnx", ".py": "pytorch", ".yaml": "yaml"}
        form = format or kinds.get(Path(path).suffix)
        if form is None:
            raise UsageError(f"how '{path}' is to be written is not known", "give format='onnx', 'pytorch' or 'yaml'")
        note = ctypes.c_void_p()
        options = _options(_CExportOptions, precision=_precision(precision), is_folded=folded,
                           note=ctypes.addressof(note))
        _lib.hwnas_network_export(self._handle, _bytes(path), _bytes(form), ctypes.byref(options))
        return _take(note) if note else None

    def compile(self, device: str = "cpu", threads: int = 0, precision: str = "f32") -> "Executable":
        """Ready to run in this process. `threads` 0: all cores."""
        return Executable(self, device, threads, precision)

    def measure(self, **options: Any) -> "Measurement":
        """One measurement, by a `Measurer` with these options."""
        with Measurer(**options) as measurer:
            return measurer.measure(self)

    def forecast(self, device: str = "cuda-dry:h200", precision: str = "f32") -> Report:
        """What a device, which need not be here, would do with it: steps and memory."""
        options = _options(_CForecastOptions, device=_maybe(device), precision=_precision(precision))
        made: Report = _report(_lib.hwnas_network_forecast, self._handle, ctypes.byref(options), parent=self)
        return made

    def compare_outputs(self, other: Optional["Network"] = None, *,
                        devices: Sequence[Optional[PathLike]] = (None, None),
                        precisions: Sequence[str] = ("f32", "f32"), threads: int = 0,
                        tolerance: float = 0) -> Report:
        """What this network and another give for the same random inputs, output by output and
        node by node; without `other` by two devices, "ref" and "cpu", or in two precisions.
        `conclude()` of the report raises where an output differs by more than the tolerance."""
        guard = _Guard()
        options = _options(_COutputsOptions, devices=(ctypes.c_char_p * 2)(*map(_maybe, devices)),
                           precisions=(ctypes.c_int * 2)(*map(_precision, precisions)), threads=threads,
                           tolerance=tolerance, cancel=guard.address)
        with guard:
            made: Report = _report(_lib.hwnas_compare_outputs, self._handle, other._handle if other else None, None,
                                   ctypes.byref(options))
        return made

    def evaluate(self, data: Union[PathLike, Mapping[str, PathLike]], labels: Optional[PathLike] = None, *,
                 against: Optional["Network"] = None, task: Optional[str] = None, device: str = "cpu", threads: int = 0,
                 precision: str = "f32", calibrate: int = 0, limit: int = 0, scale: float = 0,
                 mean: Sequence[float] = (), std: Sequence[float] = (), layout: Optional[str] = None,
                 progress: Optional[Callable[[int, int], None]] = None) -> "Evaluation":
        """How good it is on samples in files (.npy, .npz, IDX), or by how much it differs from
        `against` (docs/evaluate.md). `data`: a file, or one for each input by its name; `labels`:
        a file, else those of the .npz. `progress(done, samples)` is called after each batch."""
        guard = _Guard()
        files, options = _samples(data, labels, limit, scale, mean, std, layout)
        function = _SamplesFunction(
            lambda context, done, samples: guard.call(progress or (lambda done, samples: None), done, samples))
        asked = _options(_CEvaluationOptions, precision=_precision(precision), calibrate=calibrate, task=_maybe(task),
                         against=against._handle if against else None, cancel=guard.address, progress=function)
        stack = contextlib.ExitStack()
        try:
            dataset, opened, out = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
            _lib.hwnas_dataset_open(ctypes.byref(dataset), self._handle, len(files), files, ctypes.byref(options))
            stack.callback(_lib.hwnas_dataset_close, dataset)
            _lib.hwnas_device_open(ctypes.byref(opened), _maybe(device),
                                   ctypes.byref(_options(_CDeviceOptions, threads=threads)))
            stack.callback(_lib.hwnas_device_close, opened)
            with guard:
                _lib.hwnas_dataset_evaluate(ctypes.byref(out), dataset, self._handle, opened, ctypes.byref(asked))
            stack.callback(_lib.hwnas_evaluation_free, out)
            return Evaluation._of(out)
        finally:
            stack.close()


class Evaluation:
    """What `Network.evaluate()` found: `values` by name, of `samples` samples."""

    def __init__(self, values: Dict[str, Value], samples: int, task: str, text: str, data: Dict[str, Any]) -> None:
        self.values, self.samples, self.task, self._text, self._data = values, samples, task, text, data

    @classmethod
    def _of(cls, pointer: Any) -> "Evaluation":
        values: Dict[str, Value] = {}
        while True:
            raw = _lib.hwnas_evaluation_value(pointer, len(values))
            if not raw:
                break
            values.update(_values(raw, 1))
        with _report(_lib.hwnas_evaluation_report, pointer) as report:
            return cls(values, _lib.hwnas_evaluation_samples(pointer), _str(_lib.hwnas_evaluation_task(pointer)),
                       str(report), report.data())

    def __getitem__(self, metric: str) -> Value:
        return self.values[metric]

    def data(self) -> Dict[str, Any]:
        """What `hwnas evaluate --json` prints."""
        return self._data

    def __str__(self) -> str:
        return self._text


class Executable(_Handle):
    """A network that was compiled; called with NumPy arrays, one an input, it gives its outputs."""

    _free_name = "hwnas_exec_free"

    def __init__(self, network: Network, device: str, threads: int, precision: str) -> None:
        self._device, out = ctypes.c_void_p(), ctypes.c_void_p()
        device_options = _options(_CDeviceOptions, threads=threads)
        _lib.hwnas_device_open(ctypes.byref(self._device), _maybe(device), ctypes.byref(device_options))
        try:
            options = _options(_CExecOptions, precision=_precision(precision))
            _lib.hwnas_network_compile(ctypes.byref(out), network._handle, self._device, ctypes.byref(options))
        except BaseException:
            _lib.hwnas_device_close(self._device)
            raise
        self.inputs, self.outputs = network.inputs, network.outputs
        super().__init__(out)

    def close(self) -> None:
        if getattr(self, "_pointer", None):
            super().close()
            _lib.hwnas_device_close(self._device)

    def __call__(self, *inputs: "numpy.ndarray[Any, Any]") -> List["numpy.ndarray[Any, Any]"]:
        import numpy
        if len(inputs) != len(self.inputs):
            raise UsageError(f"{len(inputs)} arrays for {len(self.inputs)} inputs")
        given = []
        for array, info in zip(inputs, self.inputs):
            given.append(numpy.asarray(array, dtype=numpy.float32, order="C"))  # a single number stays one
            if given[-1].shape != info.shape:
                raise InputError(f"the input '{info.name}' is {info.shape}, not {given[-1].shape}")
        made = [numpy.empty(info.shape, dtype=numpy.float32) for info in self.outputs]

        def pointers(arrays: Sequence[Any]) -> Any:
            return (ctypes.c_void_p * max(len(arrays), 1))(*[a.ctypes.data for a in arrays])

        _lib.hwnas_exec_run(self._handle, pointers(given), pointers(made))
        return made


# ---- Estimates and measurements ----


class Estimate(NamedTuple):
    """An accuracy that was not measured. `sd` 0: exact as published; None: none is claimed."""

    mean: float
    sd: Optional[float]
    is_trained: bool
    is_outside: bool


class Predictor(_Handle):
    """Estimates accuracies: a fitted predictor by name or file, "table:FILE#COLUMN", ..."""

    _free_name = "hwnas_predictor_close"

    def __init__(self, name: PathLike, space: Space) -> None:
        out = ctypes.c_void_p()
        self._guard = _Guard()
        _lib.hwnas_predictor_open(ctypes.byref(out), _bytes(name), space._handle)
        super().__init__(out, space)
        _lib.hwnas_predictor_stop_on(self._handle, self._guard.address)

    @property
    def target(self) -> str:
        return _str(_lib.hwnas_predictor_target(self._handle))

    @property
    def unit(self) -> str:
        return _str(_lib.hwnas_predictor_unit(self._handle))

    def score(self, codes: Sequence[str]) -> List[Estimate]:
        raw = (_CEstimate * max(len(codes), 1))()
        with self._guard:
            _lib.hwnas_predictor_score_codes(raw, self._handle, _text_array(codes), len(codes))
        return [Estimate(e.mean, _number(e.sd), e.is_trained, e.is_outside) for e in raw[: len(codes)]]


def _text_array(texts: Sequence[PathLike], ends: bool = False) -> Any:
    """`ends`: with a null pointer behind the last."""
    return (ctypes.c_char_p * max(len(texts) + ends, 1))(*[_bytes(t) for t in texts])


class Measurement:
    """What was measured of a network. `float()` is its median latency in seconds."""

    def __init__(self, values: Dict[str, Value], doubt: Optional[str], details: Dict[str, Any]) -> None:
        self.values = values
        self.doubt = doubt  # why the figures stand on shaky ground
        self.details = details  # a row of "hwnas.profile" (docs/json.md)

    @property
    def p50(self) -> float:
        return self.values["latency.p50"].value

    def __float__(self) -> float:
        return self.p50

    def __getitem__(self, metric: str) -> Value:
        return self.values[metric]

    def __repr__(self) -> str:
        v = self.values["latency.p50"]
        interval = f" [{1e3 * v.low:.4g}, {1e3 * v.high:.4g}]" if v.low is not None and v.high is not None else ""
        return f"<Measurement latency.p50 {1e3 * v.value:.4g} ms{interval}{' ?' if self.doubt else ''}>"


class Measurer(_Handle):
    """Measures networks in a process of its own. `threads` 0: all cores; `mode`: "hot", "cold",
    "cold-weights", "after-idle=S", "sustained=S"; `interval`: relative width at which sampling ends;
    `progress(phase)` is told "compiling", "sampling", several times a second."""

    _free_name = "hwnas_measurer_close"

    def __init__(self, device: str = "cpu", threads: int = 1, precision: str = "f32", *, mode: Optional[str] = None,
                 interval: float = 0.01, seconds: float = 1.0, timeout: float = 60.0, memory_limit: int = 0,
                 progress: Optional[Callable[[str], None]] = None) -> None:
        self._guard = guard = _Guard()

        def tell(context: Any, phase: bytes) -> None:
            guard.call(progress or (lambda phase: None), _str(phase))  # signals are handled here, too

        self._tell = _PhaseFunction(tell)
        out = ctypes.c_void_p()
        options = _options(_CMeasurerOptions, device=_maybe(device), threads=threads,
                           precision=_precision(precision), mode=_maybe(mode), interval=interval, seconds=seconds,
                           timeout=timeout, memory_limit=memory_limit, cancel=guard.address, progress=self._tell)
        _lib.hwnas_measurer_open(ctypes.byref(out), ctypes.byref(options))
        super().__init__(out)

    def measure(self, network: Network) -> Measurement:
        out, text = ctypes.c_void_p(), ctypes.c_void_p()
        with self._guard:
            _lib.hwnas_measurer_measure(ctypes.byref(out), self._handle, network._handle)
        try:
            values: Dict[str, Value] = {}
            while True:
                raw = _lib.hwnas_result_value(out, len(values))
                if not raw:
                    break
                values.update(_values(raw, 1))
            doubt = _lib.hwnas_result_doubt(out)
            _lib.hwnas_result_json(ctypes.byref(text), out)
        finally:
            _lib.hwnas_result_free(out)
        return Measurement(values, _str(doubt) if doubt else None, json.loads(_take(text))["rows"][0])


class Profile(Report):
    """Models under settings, a row each: keys as of "rows" in docs/json.md, SI."""

    @property
    def rows(self) -> Rows:
        return Rows(self.data()["rows"])


def _profile_options(guard: _Guard, models: Any = (), *, code: Optional[str] = None, devices: Any = (), batches: Any = (),
                     threads: Any = (), precisions: Any = (), streams: Any = (), shape: Optional[str] = None,
                     mode: Optional[str] = None, priority: Optional[str] = None, interval: float = 0, seconds: float = 0,
                     min_runs: int = 0, layers: bool = False, verify: bool = False, skip: bool = False,
                     name: Optional[str] = None, save: Optional[PathLike] = None,
                     max_error: Optional[float] = None, training: Optional[str] = None, samples: float = 0,
                     epochs: float = 0, prices: Optional[PathLike] = None, data: Any = None,
                     labels: Optional[PathLike] = None, max_loss: Optional[float] = None, calibrate: int = 0,
                     limit: int = 0, scale: float = 0, mean: Sequence[float] = (), std: Sequence[float] = (),
                     layout: Optional[str] = None, progress: Optional[Callable[[str], None]] = None) -> Any:

    def numbers(given: Any, word: str) -> List[int]:
        return [-1 if x == word else int(x) for x in _list(given)]

    mixings = {p for p in _list(precisions) if p in _MIXINGS[1:]}
    texts = {"models": _list(models), "devices": _list(devices)}
    ints = {"batches": numbers(batches, ""), "threads": numbers(threads, "all"), "streams": numbers(streams, "fill"),
            "precisions": [_precision(p) for p in _list(precisions) if p not in mixings]}
    fields: Dict[str, Any] = {f"n_{key}": len(value) for key, value in {**texts, **ints}.items()}
    arrays: Dict[str, Any] = {key: _text_array(value) for key, value in texts.items()}
    arrays.update({key: (ctypes.c_int * max(len(value), 1))(*value) for key, value in ints.items()})
    for key, array in arrays.items():
        pointer: Any = _Texts if key in texts else _Ints
        fields[key] = ctypes.cast(array, pointer)
    files, read = _samples(data, labels, limit, scale, mean, std, layout)
    if len(files):
        fields.update(data=ctypes.cast(files, ctypes.POINTER(_CDataFile)), n_data=len(files),
                      data_options=ctypes.pointer(read))
    elif labels is not None or limit or scale or len(mean) or len(std) or layout is not None:
        raise UsageError("labels, limit, scale, mean, std and layout are of data", "data='val.npz' has the samples")
    return _options(_CProfileOptions, code=_maybe(code), mode=_maybe(mode), priority=_maybe(priority),
                    interval=interval, seconds=seconds, min_runs=min_runs, with_layers=layers,
                    verifies=verify, skips=skip, name=_maybe(name), save=_maybe(save), cancel=guard.address,
                    shape=_maybe(shape), mixings=sum({1 << _MIXINGS.index(p) for p in mixings}),
                    max_error=-1 if max_error is None else max_error, training=_optimizer(training),
                    samples=samples, epochs=epochs, prices=_maybe(prices), calibrate=calibrate,
                    max_loss=-1 if max_loss is None else max_loss, progress=_words_function(guard, progress), **fields)


def profile(models: Union[PathLike, Sequence[PathLike]], *, code: Optional[str] = None,
            devices: Union[str, Sequence[str]] = (), batches: Union[int, Sequence[int]] = (),
            threads: Union[int, str, Sequence[Union[int, str]]] = (), precisions: Union[str, Sequence[str]] = (),
            streams: Union[int, str, Sequence[Union[int, str]]] = (), shape: Optional[str] = None,
            mode: Optional[str] = None, priority: Optional[str] = None, interval: float = 0, seconds: float = 0,
            min_runs: int = 0, layers: bool = False, verify: bool = False, skip: bool = False,
            name: Optional[str] = None, save: Optional[PathLike] = None,
            max_error: Optional[float] = None, training: Optional[str] = None, samples: float = 0,
            epochs: float = 0, prices: Optional[PathLike] = None,
            data: Union[None, PathLike, Mapping[str, PathLike]] = None, labels: Optional[PathLike] = None,
            max_loss: Optional[float] = None, calibrate: int = 0, limit: int = 0, scale: float = 0,
            mean: Sequence[float] = (), std: Sequence[float] = (), layout: Optional[str] = None,
            progress: Optional[Callable[[str], None]] = None) -> Profile:
    """Measures models (names of networks, ONNX files) under every combination of the settings, as
    `hwnas profile` does. `shape`: dimensions that ONNX files leave open, by the input, "ids=1x128", or by their names,
    "sequence_length=128"; "sequence_length={1,128}" is measured in each. `threads` may be "all", `streams` "fill", one of `precisions` "mixed" or "mixed-bf16" with
    the share `max_error` (0.05). `training`, "sgd" or "adamw": a training step in the place of an inference; then
    `samples` and `epochs` (0: 1) say what a whole training takes, and with `prices` costs. `data`, as of
    `Network.evaluate()`, chooses the layers of what is mixed; with labels accuracy judges, which may lose `max_loss`
    points (1), and `calibrate` (64) samples give ranges. `progress(words)` is told what is measured next. Raises what failed when no row was measured; a row that
    failed among others says so in `status` and `message`."""
    guard = _Guard()
    options = _profile_options(guard, models, code=code, devices=devices, batches=batches, threads=threads,
                               precisions=precisions, streams=streams, shape=shape, mode=mode, priority=priority,
                               interval=interval, seconds=seconds, min_runs=min_runs, layers=layers,
                               verify=verify, skip=skip, name=name, save=save, max_error=max_error,
                               training=training, samples=samples, epochs=epochs, prices=prices, data=data,
                               labels=labels, max_loss=max_loss, calibrate=calibrate, limit=limit, scale=scale,
                               mean=mean, std=std, layout=layout, progress=progress)
    with guard:
        made: Profile = _report(_lib.hwnas_models_profile, ctypes.byref(options), kind=Profile)
    if not any(row["status"] == "ok" for row in made.rows):
        made.conclude()
    return made


def compare(models: Union[PathLike, Sequence[PathLike]] = (), *,
            recorded: Union[PathLike, Sequence[PathLike], Mapping[str, PathLike]] = (), measure: Optional[bool] = None,
            prices: Optional[PathLike] = None, percentile: float = 0, target: float = 0, load: float = 0,
            utilisation: float = 0, base: Optional[str] = None, **settings: Any) -> Report:
    """Which device serves each model cheapest, as `hwnas compare` says it (docs/cpu-or-gpu.md).

    `recorded`: files of `profile(save=...)`, from any machine, or a dict of them by the names of the
    machines; `measure`: here as well, by default where nothing is recorded or `devices` are named;
    `target`: seconds; `load`: requests a second; `settings` as of `profile()`, with `training` training
    steps are compared, in units of those of the machine `base`. `conclude()` raises InfeasibleError where no
    device keeps the target.
    """
    guard = _Guard()
    named: List[Any] = (list(recorded.items()) if isinstance(recorded, Mapping)
                        else [(None, path) for path in _list(recorded)])
    rows: List[Any] = [(_maybe(name), _bytes(path)) for name, path in named]
    profiles = (_CRecordedProfile * max(len(named), 1))(*rows)
    asked = _profile_options(guard, models, **settings)
    measures = measure if measure is not None else not named or bool(settings.get("devices"))
    options = _options(_CCompareOptions, models=ctypes.pointer(asked), measures=measures,
                       recorded=ctypes.cast(profiles, ctypes.POINTER(_CRecordedProfile)), n_recorded=len(named),
                       prices=_maybe(prices), percentile=percentile, target=target, load=load, utilisation=utilisation,
                       base=_maybe(base))
    with guard:
        made: Report = _report(_lib.hwnas_compare, ctypes.byref(options))
    return made


def compare_baseline(recorded: PathLike, models: Union[PathLike, Sequence[PathLike]] = (), *, tolerance: float = 0,
                     interval: float = 0, seconds: float = 0,
                     progress: Optional[Callable[[str], None]] = None) -> Report:
    """Measures again what a file of `profile(save=...)` holds. `conclude()` raises SlowerError where a
    network got slower by more than `tolerance` (0: 0.05), twice in a row."""
    guard = _Guard()
    asked = _profile_options(guard, models, interval=interval, seconds=seconds, progress=progress)
    options = _options(_CBaselineOptions, recorded=_bytes(recorded), tolerance=tolerance, models=ctypes.pointer(asked))
    with guard:
        made: Report = _report(_lib.hwnas_compare_baseline, ctypes.byref(options))
    return made


def save_page(source: PathLike, path: PathLike) -> None:
    """Writes a study, or what `profile(save=...)` or `hwnas compare --json` wrote, as one HTML file."""
    with _report(_lib.hwnas_page_open, _bytes(source)) as page:
        _lib.hwnas_page_save(page._handle, _bytes(path))


def save_picture(source: PathLike, name: str, path: PathLike) -> None:
    """Writes a picture of such a file, as PNG where `path` ends so, else as SVG: "front" or "curve" of
    a study, "sweep" or "roofline" of the others."""
    write = _lib.hwnas_page_save_png if Path(path).suffix == ".png" else _lib.hwnas_page_save_picture
    with _report(_lib.hwnas_page_open, _bytes(source)) as page:
        write(page._handle, _bytes(name), _bytes(path))


def devices(device: Optional[str] = None, refresh: bool = False) -> Dict[str, Any]:
    """The devices that the library knows, and how fast each is at most ("hwnas.devices")."""
    guard = _Guard()
    options = _options(_CSurveyOptions, refresh=refresh, device=_maybe(device), cancel=guard.address)
    with guard, _report(_lib.hwnas_devices_survey, ctypes.byref(options)) as report:
        found: Dict[str, Any] = report.data()
    return found


def latency(module: Any, example: Any, *, device: str = "cpu", threads: int = 1, precision: str = "f32",
            **options: Any) -> Measurement:
    """The latency of a PyTorch module, as it would be deployed: it is exported as ONNX with `example`
    (a tensor, or a tuple of them; its batch is measured) and measured by a `Measurer`, which takes the
    other options."""
    import torch
    arguments = example if isinstance(example, tuple) else (example,)
    more = {"dynamo": False} if "dynamo" in inspect.signature(torch.onnx.export).parameters else {}
    was_training = module.training
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, f"{type(module).__name__}.onnx")
        try:
            module.eval()
            with torch.no_grad():
                torch.onnx.export(module, arguments, path, **more)
        finally:
            module.train(was_training)
        with Network(path) as network:
            return network.measure(device=device, threads=threads, precision=precision, **options)


# ---- Searches and studies ----


class Progress(NamedTuple):
    """How far a search is. `seconds_left` None: not known yet; `winner` None: none is feasible yet."""

    done: int
    failed: int
    max_trials: int
    front: int
    seconds: float
    seconds_left: Optional[float]
    winner: Optional[str]
    phase: str
    trials_per_minute: float
    best: Optional[str]
    seconds_left_range: Optional[Tuple[float, float]]  # 95 % interval
    measured: Optional[str]  # code of the network that is measured now
    n_measured: int
    n_disturbed: int  # of these measurements, while the machine was busy


Job = Union[PathLike, Mapping[str, Any], None]
_GROUPS = ("strategy", "budget", "measure", "export")  # keys of a job that have keys


def _job_keys() -> List[str]:
    info = _CJobKeyInfo()
    found: List[str] = []
    while _lib.hwnas_job_key_list(ctypes.byref(info), len(found)):
        found.append(_str(info.name))
    return found


def _flag(key: str, value: Any) -> str:
    """A value as it would stand on the command line."""
    if isinstance(value, (str, os.PathLike)):
        return os.fspath(value)
    if isinstance(value, (list, tuple)) and key != "devices" and all(isinstance(v, str) for v in value):
        return ", ".join(value)
    return json.dumps(value)  # which is YAML, too


def _flags(job: Job, keys: Mapping[str, Any]) -> Tuple[Optional[bytes], Any]:
    """The file of a job, and what is said besides, as the library takes it."""
    said: Dict[str, Any] = {}
    for key, value in job.items() if isinstance(job, Mapping) else ():
        said.update(value if key in _GROUPS and isinstance(value, Mapping) else {key: value})
    said.update({key.replace("_", "-"): value for key, value in keys.items()})
    known = _job_keys()
    for key in said:
        if key not in known:
            near = _lib.hwnas_nearest(_bytes(key), _text_array(known, ends=True))
            raise UsageError(f"a job has no key '{key}'", f"did you mean '{_str(near)}'?" if near else
                             f"there are {', '.join(known)}")
    raw: List[Any] = [(_bytes(key), _bytes(_flag(key, value))) for key, value in said.items() if value is not None]
    return _maybe(None if isinstance(job, Mapping) else job), (_CJobFlag * (len(raw) + 1))(*raw)


def _search_options(guard: _Guard, flags: Any, **fields: Any) -> Any:
    return _options(_CSearchOptions, cancel=guard.address, flags=ctypes.cast(flags, ctypes.POINTER(_CJobFlag)),
                    **fields)


def _progress_function(guard: _Guard, progress: Optional[Callable[[Progress], None]]) -> Any:

    def tell(context: Any, raw: Any) -> None:
        p = raw.contents
        guard.call(progress or (lambda p: None),
                   Progress(p.n_done, p.n_failed, p.max_trials, p.n_front, p.seconds, _number(p.seconds_left),
                            _str(p.winner) if p.winner is not None else None, _str(p.phase), p.trials_per_minute,
                            _str(p.best) if p.best is not None else None,
                            None if math.isnan(p.seconds_left_low) else (p.seconds_left_low, p.seconds_left_high),
                            _str(p.measured) if p.measured is not None else None, p.n_measured, p.n_disturbed))

    return _ProgressFunction(tell)


def search(job: Job = None, *, study: Optional[PathLike] = None, resume: bool = False, overwrite: bool = False,
           progress: Optional[Callable[[Progress], None]] = None, **keys: Any) -> "Study":
    """Runs a search to its end, as `hwnas search` does, and returns its study, to be read.

    `job`: a YAML file, a dict of the same keys, or None where the keys say it all
    (docs/searching.md; `train_budget` is the key train-budget, `trials` is that of the budget).
    `progress(p)` is called after each trial; an exception in it, as Ctrl-C, ends the search, and
    what was finished is kept: `resume=True` goes on. InfeasibleError: no network meets the limits.
    """
    guard = _Guard()
    file, flags = _flags(job, keys)
    function = _progress_function(guard, progress)
    options = _search_options(guard, flags, study=_maybe(study), resume=resume, overwrite=overwrite,
                              progress=function)
    with guard:
        report: Report = _report(_lib.hwnas_search, file, ctypes.byref(options))
    with report:
        path: str = report.data()["study"]
        try:
            report.conclude()
        except InfeasibleError as e:
            e.study = path
            raise
    return Study.read(path)


def optimize(model: PathLike, samples: str, *, constraints: Optional[str] = None, max_loss: float = 0,
             minutes: float = 10, trials: int = 0, device: str = "cpu", threads: int = 1, batch: int = 1, seed: int = 0,
             out: Optional[PathLike] = None, resume: bool = False, overwrite: bool = False,
             precisions: Optional[str] = None, resolution: bool = False,
             progress: Optional[Callable[[Progress], None]] = None) -> Report:
    """Makes a trained ONNX model faster, as `hwnas optimize` does (docs/optimize.md).

    `samples`: "FILE#KEY=VALUE,...", labelled samples; `constraints`: "latency.p50 <= 0.5 x", x being
    what the model has; `max_loss`: points of accuracy, 0: any. The report's `files` were written;
    InfeasibleError: no network meets the limits.
    """
    guard = _Guard()
    function = _progress_function(guard, progress)
    options = _options(_COptimizeOptions, samples=_bytes(samples), constraints=_maybe(constraints), max_loss=max_loss,
                       minutes=minutes, max_trials=trials, device=_maybe(device), threads=threads, batch=batch,
                       seed=seed, out=_maybe(out), resume=resume, overwrite=overwrite, cancel=guard.address,
                       progress=function, precisions=_maybe(precisions), with_resolution=resolution)
    with guard:
        made: Report = _report(_lib.hwnas_optimize, _bytes(model), ctypes.byref(options))
    made.conclude()
    return made


def plan(job: Job = None, *, study: Optional[PathLike] = None, **keys: Any) -> Report:
    """What `search()` would do, and how long it would take."""
    guard = _Guard()
    file, flags = _flags(job, keys)
    options = _search_options(guard, flags, study=_maybe(study))
    with guard:
        made: Report = _report(_lib.hwnas_search_plan, file, ctypes.byref(options))
    return made


class Mix(NamedTuple):
    """Which layers are in 8-bit integers, where each has a precision of its own: `layers` has a letter
    for each of `n_layers`, "s" where it is, "b" in bf16 by itself, or "f" in `floats`. `error`: of outputs
    beside f32 on `samples` of the job's data (0: random inputs), a share, at most `max_error` (infinite:
    accuracy alone judged). With labels `metric` says what `accuracy` is, in percent on samples held
    out, and that of f32; it might be `max_loss` points below f32 on those that chose."""

    floats: str
    n_layers: int
    n_s8: int
    layers: str
    error: float
    max_error: float
    samples: int = 0
    metric: Optional[str] = None
    accuracy: Optional[float] = None
    f32_accuracy: Optional[float] = None
    max_loss: Optional[float] = None


class Trial(NamedTuple):
    """A network of a study. `values`: what is known of it, as "params", "accuracy". `mixing`: "mixed"
    where layers have a precision each, which `mixes` has by device once they were measured."""

    number: int
    code: str
    digest: str
    batch: int
    threads: int
    precision: str
    is_again: bool
    values: Dict[str, Value]
    mixing: str
    mixes: Dict[str, Mix]


def _mix(raw: Any) -> Mix:
    return Mix(_PRECISIONS[raw.floats], raw.n_layers, raw.n_s8, _str(raw.layers), raw.error, raw.max_error,
               raw.n_samples, _str(raw.accuracy_metric) if raw.accuracy_metric else None,
               *(None if math.isnan(v) else v for v in (raw.accuracy, raw.f32_accuracy, raw.max_loss)))


def _trial(raw: Any) -> Trial:
    return Trial(raw.number, _str(raw.code), _str(raw.digest), raw.batch, raw.threads, _PRECISIONS[raw.precision],
                 raw.is_again, _values(raw.values, raw.n_values), _MIXINGS[raw.mixing],
                 {_str(raw.mixes[i].device): _mix(raw.mixes[i]) for i in range(raw.n_mixes)})


# What JSON's units are in SI.
_SCALES = {"ms": 1e-3, "us": 1e-6, "mJ": 1e-3, "uJ": 1e-6, "MiB": 2.0**20, "KiB": 2.0**10, "M": 1e6}
_SI = {"ms": "s", "us": "s", "mJ": "J", "uJ": "J", "MiB": "bytes", "KiB": "bytes", "M": "", "/s": "1/s"}
Told = Union[float, Value, Tuple[float, float, float]]


class Study(_Handle):
    """The trials of a search: `Study(job)` asks and tells, `Study.read(path)` looks at any.

        with hwnas.Study(device="external", space=..., objectives=[...], trials=100, study="s.db") as study:
            for trial in study:
                study.tell(trial, {"latency.p50": seconds})
            print(study.front())

    `resume`: go on with the study if it is there. `runs_again`: each encoding is run, also where
    several build one network.
    """

    _free_name = "hwnas_study_close"

    def __init__(self, job: Job = None, *, study: Optional[PathLike] = None, resume: bool = False,
                 runs_again: bool = False, **keys: Any) -> None:
        self._guard = _Guard()
        file, flags = _flags(job, keys)
        options = _options(_CStudyOptions, study=_maybe(study), resume=resume, runs_again=runs_again,
                           cancel=self._guard.address, flags=ctypes.cast(flags, ctypes.POINTER(_CJobFlag)))
        out = ctypes.c_void_p()
        with self._guard:
            _lib.hwnas_study_open(ctypes.byref(out), file, ctypes.byref(options))
        super().__init__(out)

    @classmethod
    def read(cls, path: PathLike) -> "Study":
        """Any study, also one that is worked on."""
        out = ctypes.c_void_p()
        _lib.hwnas_study_read(ctypes.byref(out), _bytes(path))
        made = cls.__new__(cls)
        made._guard = _Guard()
        _Handle.__init__(made, out)
        return made

    # -- Ask and tell --

    def ask(self) -> Trial:
        """A network to run; ExhaustedError: no other is to be made, and why."""
        out = ctypes.POINTER(_CStudyTrial)()
        with self._guard:
            _lib.hwnas_study_ask(ctypes.byref(out), self._handle)
        return _trial(out.contents)

    def __iter__(self) -> Iterator[Trial]:
        """Asks until the study is at its end."""
        while True:
            try:
                trial = self.ask()
            except ExhaustedError:
                return
            yield trial

    def tell(self, trial: Union[Trial, int], values: Mapping[str, Told]) -> None:
        """Tells what was measured: SI, a number or (value, low, high), of all metrics that the job
        judges by. It is on disk when this returns."""
        raw = (_CValue * max(len(values), 1))()
        for place, (metric, told) in zip(raw, values.items()):
            value, low, high = told[:3] if isinstance(told, tuple) else (float(told), None, None)
            place.metric, place.value = _bytes(metric), value
            place.low, place.high = (math.nan if x is None else x for x in (low, high))
        number = trial.number if isinstance(trial, Trial) else trial
        _lib.hwnas_study_tell(self._handle, number, raw, len(values))

    def fail(self, trial: Union[Trial, int], message: str, why: Type[Error] = CrashedError) -> None:
        """Tells that a trial could not be measured; it is not proposed again."""
        numbers = [i + 1 for i, (_, kind) in enumerate(_ERRORS) if kind is why]
        number = trial.number if isinstance(trial, Trial) else trial
        _lib.hwnas_study_tell_failure(self._handle, number, numbers[0] if numbers else 0, _bytes(message))

    # -- What was found --

    def set_constraints(self, constraints: Optional[str]) -> None:
        """Front, trials and report answer for these from here on; None: for the job's. Runs nothing."""
        _lib.hwnas_study_set_constraints(self._handle, _maybe(constraints))

    def front(self, device: int = 0) -> Rows:
        """The Pareto front, the best in the first objective first; SI."""
        out, n = ctypes.POINTER(_CStudyTrial)(), ctypes.c_size_t()
        _lib.hwnas_study_front(ctypes.byref(out), ctypes.byref(n), self._handle, device)
        trials = [_trial(out[i]) for i in range(n.value)]
        return Rows({"trial": t.number, "code": t.code, "digest": t.digest, "batch": t.batch, "threads": t.threads,
                     "precision": t.mixing or t.precision, **({"mixes": t.mixes} if t.mixes else {}),
                     **_flat(t.values)} for t in trials)

    def trials(self) -> Rows:
        """All trials by number, also those that failed ("status", "message") or run; SI."""
        with _report(_lib.hwnas_study_trials, self._handle, parent=self) as report:
            found = report.data()["trials"]
        rows = Rows()
        for t in found:
            values = {name: _si(v) for name, v in t.get("objectives", {}).items()}
            mixes = {name: Mix(m["floats"], m["n_layers"], m["layers_in_s8"], m["layers"], m["mixed_error"],
                               math.inf if m["max_error"] is None else m["max_error"], m.get("choice_samples", 0),
                               m.get("accuracy_metric"), m.get("accuracy"), m.get("f32_accuracy"), m.get("max_loss"))
                     for name, m in t.get("measurement", {}).get("mix", {}).items()}
            rows.append({"trial": t["trial"], "code": t["arch"], "status": t["status"], "on_front": t.get("front"),
                         "feasible": t.get("feasible"), "message": t.get("message"),
                         **({"mixes": mixes} if mixes else {}), **_flat(values)})
        return rows

    def report(self) -> Report:
        """What `hwnas study show` prints."""
        made: Report = _report(_lib.hwnas_study_report, self._handle, parent=self)
        return made

    def chart(self) -> str:
        """The front among all trials, drawn in characters, 80 columns wide."""
        with _report(_lib.hwnas_study_chart, self._handle, parent=self) as report:
            return str(report)

    def explain(self, trial: int = -1, *, measure: bool = False) -> Report:
        """Why a trial, -1 the winner, stands where it does. With `measure` its neighbours are measured now,
        in turns with it, which Ctrl-C ends."""
        made: Report
        if not measure:
            made = _report(_lib.hwnas_study_explain, self._handle, trial, parent=self)
            return made
        guard = _Guard()
        options = _options(_CExplainOptions, cancel=guard.address)
        with guard:
            made = _report(_lib.hwnas_study_explain_measured, self._handle, trial, ctypes.byref(options),
                           parent=self)
        return made

    def save_page(self, path: PathLike) -> None:
        """Writes what `hwnas report` does: one HTML file."""
        with _report(_lib.hwnas_page_of_study, self._handle, parent=self) as page:
            _lib.hwnas_page_save(page._handle, _bytes(path))

    def picture(self, name: str = "front") -> str:
        """A picture as SVG: "front", or "curve" (the best network so far)."""
        out = ctypes.c_void_p()
        with _report(_lib.hwnas_page_of_study, self._handle, parent=self) as page:
            _lib.hwnas_page_picture(ctypes.byref(out), page._handle, _bytes(name))
        return _take(out)

    def __str__(self) -> str:
        return str(self.report())

    def _repr_svg_(self) -> Optional[str]:
        """For notebooks."""
        try:
            return self.picture()
        except Error:
            return None

    # -- Plots, with matplotlib (Debian: python3-matplotlib) --

    def objectives(self) -> List[str]:
        found: List[str] = self.report().data()["job"]["objectives"]
        return found

    def plot(self, x: Optional[str] = None, y: Optional[str] = None, ax: Any = None) -> Any:
        """All trials and the front over two metrics, by default the first two objectives; returns
        the axes."""
        from matplotlib import pyplot
        names = self.objectives()
        up: str = y or names[0]
        across: str = x or names[min(1, len(names) - 1)]
        ax = ax or pyplot.subplots()[1]
        rows = [r for r in self.trials() if across in r and up in r]
        for is_feasible, colour in ((True, "tab:blue"), (False, "tab:gray")):
            some = [r for r in rows if bool(r["feasible"]) is is_feasible]
            label = "feasible" if is_feasible else "misses a limit"
            ax.plot([r[across] for r in some], [r[up] for r in some], ".", alpha=0.4, color=colour, label=label)
        front = sorted((r for r in self.front() if across in r and up in r), key=lambda r: float(r[across]))
        errors = [[[max(0, r[m] - r.get(f"{m} low", r[m])) for r in front],
                   [max(0, r.get(f"{m} high", r[m]) - r[m]) for r in front]] for m in (across, up)]
        ax.errorbar([r[across] for r in front], [r[up] for r in front], xerr=errors[0], yerr=errors[1], fmt="o-",
                    color="tab:orange", label="Pareto front")
        ax.set_xlabel(_label(across))
        ax.set_ylabel(_label(up))
        ax.legend()
        return ax


def _si(value: Mapping[str, Any]) -> Value:
    unit = value["unit"]
    scale = _SCALES.get(unit, 1.0)
    ends = [None if value[end] is None else value[end] * scale for end in ("low", "high")]
    return Value(value["value"] * scale, ends[0], ends[1], _SI.get(unit, unit), value["source"])


def _label(metric: str) -> str:
    units = {"accuracy": "%", "latency": "s", "throughput": "1/s", "energy": "J", "memory": "bytes"}
    unit = units.get(metric.split(" ")[0].split(".")[0])
    return f"{metric} ({unit})" if unit else metric


def optuna_objective(space: Space, predictor: Predictor, measurer: Measurer) -> Callable[[Any], Tuple[float, float]]:
    """An objective of Optuna: (accuracy, latency in seconds) of the network that a trial chooses.

        study = optuna.create_study(directions=["maximize", "minimize"])
        study.optimize(hwnas.optuna_objective(space, predictor, measurer), n_trials=100)
    """

    def objective(trial: Any) -> Tuple[float, float]:
        code = space.suggest(trial)
        trial.set_user_attr("code", code)
        with space.network(code) as network:
            measured = measurer.measure(network)
        return predictor.score([code])[0].mean, measured.p50

    return objective


if sys.version_info < (3, 8):
    raise ImportError("hwnas needs Python 3.8 or later")
