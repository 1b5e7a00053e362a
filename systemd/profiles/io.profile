# SPDX-License-Identifier: LGPL-2.1-or-later
[profile]
summary = Block requests from queue to completion, writeback, and the tasks that wait for them
events = sched:sched_switch sched:sched_waking
optional = block:block_bio_queue block:block_rq_insert block:block_rq_issue
  block:block_rq_complete block:block_plug block:block_unplug
  writeback:writeback_start writeback:writeback_written
  filemap:mm_filemap_add_to_page_cache scsi:scsi_dispatch_cmd_start
  scsi:scsi_dispatch_cmd_done nvme:nvme_setup_cmd nvme:nvme_complete_rq
