# Where earlier config files import it from.
from maskedlm.data.labelled.formats import glue as glue
