"""Recording -> Report -> text, picture, HTML, JSON, traces and dumps. Reads events and plans, changes nothing compiled."""

from jitlab.targets.target import Peaks

from .expect import expect
from .reading import read_report
from .recording import Recording, explain, record
from .report import MIME, Report

__all__ = ["MIME", "Peaks", "Recording", "Report", "expect", "explain", "read_report", "record"]
