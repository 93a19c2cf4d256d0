<?php

// Nobody calls this any more.
