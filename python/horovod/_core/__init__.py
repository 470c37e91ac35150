"""What every front end shares and no framework is needed for."""

from . import _native
from .errors import HorovodInternalError

_native.set_error_class(HorovodInternalError)
