// library.inc.h - Api over one ABI family. One source, compiled per family (open_mpi.cc, mpich.cc,
// standard.cc): the family gives the types of handles, the layout of a status and the constants.
#pragma once

#include <climits>
#include <cstring>
#include <memory>
#include <vector>

#include "base/text.h"
#include "base/thread_annotations.h"
#include "mpi/library.h"

namespace hvd::mpi {

// The functions by their names in the standard, without MPI_.
template <typename Abi>
struct Functions {
  using H = typename Abi::Handle;
  using S = typename Abi::Status;

  int (*Init_thread)(int*, char***, int, int*);
  int (*Initialized)(int*);
  int (*Finalized)(int*);
  int (*Query_thread)(int*);
  int (*Finalize)();
  int (*Error_string)(int, char*, int*);
  int (*Comm_rank)(H, int*);
  int (*Comm_size)(H, int*);
  int (*Comm_idup)(H, H*, H*);
  int (*Comm_group)(H, H*);
  int (*Group_incl)(H, int, const int*, H*);
  int (*Group_free)(H*);
  int (*Comm_create_group)(H, H, int, H*);
  int (*Comm_set_errhandler)(H, H);
  int (*Comm_get_attr)(H, int, void*, int*);
  int (*Issend)(const void*, int, H, int, int, H, H*);
  int (*Irecv)(void*, int, H, int, int, H, H*);
  int (*Iprobe)(int, int, H, int*, S*);
  int (*Test)(H*, int*, S*);
  int (*Wait)(H*, S*);
  int (*Cancel)(H*);
  int (*Get_count)(const S*, H, int*);
  int (*Iallreduce)(const void*, void*, int, H, H, H, H*);

  Status load(const Symbols& symbols) {
    Status failure;
    const auto get = [&](const char* name, auto& function) {
      auto found = symbols.get(name);
      if (!found) failure = found.status();
      if (found) std::memcpy(&function, &*found, sizeof function);
    };
    get("MPI_Init_thread", Init_thread);
    get("MPI_Initialized", Initialized);
    get("MPI_Finalized", Finalized);
    get("MPI_Query_thread", Query_thread);
    get("MPI_Finalize", Finalize);
    get("MPI_Error_string", Error_string);
    get("MPI_Comm_rank", Comm_rank);
    get("MPI_Comm_size", Comm_size);
    get("MPI_Comm_idup", Comm_idup);
    get("MPI_Comm_group", Comm_group);
    get("MPI_Group_incl", Group_incl);
    get("MPI_Group_free", Group_free);
    get("MPI_Comm_create_group", Comm_create_group);
    get("MPI_Comm_set_errhandler", Comm_set_errhandler);
    get("MPI_Comm_get_attr", Comm_get_attr);
    get("MPI_Issend", Issend);
    get("MPI_Irecv", Irecv);
    get("MPI_Iprobe", Iprobe);
    get("MPI_Test", Test);
    get("MPI_Wait", Wait);
    get("MPI_Cancel", Cancel);
    get("MPI_Get_count", Get_count);
    get("MPI_Iallreduce", Iallreduce);
    return failure;
  }
};

template <typename Abi>
struct Constants {
  using H = typename Abi::Handle;

  H world{}, errors_return{}, byte{}, sum{}, min{}, max{}, product{};
  H types[kDTypeCount]{};

  Status load(const Symbols& symbols) {
    HVD_TRY_ASSIGN(world, Abi::kWorld.in(symbols));
    HVD_TRY_ASSIGN(errors_return, Abi::kErrorsReturn.in(symbols));
    HVD_TRY_ASSIGN(byte, Abi::kByte.in(symbols));
    HVD_TRY_ASSIGN(sum, Abi::kSum.in(symbols));
    HVD_TRY_ASSIGN(min, Abi::kMin.in(symbols));
    HVD_TRY_ASSIGN(max, Abi::kMax.in(symbols));
    HVD_TRY_ASSIGN(product, Abi::kProduct.in(symbols));
    for (int i = 0; i < kDTypeCount; ++i) {
      if (!is_mpi_type(static_cast<DType>(i))) continue;
      HVD_TRY_ASSIGN(types[i], Abi::kTypes[i].in(symbols));
    }
    return Status::ok();
  }
};

template <typename Abi>
class Library final : public Api {
 public:
  using H = typename Abi::Handle;
  using S = typename Abi::Status;

  static Result<std::unique_ptr<Api>> load(const Symbols& symbols, std::string name) {
    auto library = std::make_unique<Library>();
    library->name_ = std::move(name);
    HVD_TRY(library->call_.load(symbols));
    HVD_TRY(library->constant_.load(symbols));
    return std::unique_ptr<Api>(std::move(library));
  }

  const std::string& name() const override { return name_; }
  void set_one_at_a_time() override { takes_turns_ = true; }

  bool is_initialized() override {
    int flag = 0;
    return call_.Initialized(&flag) == 0 && flag != 0;
  }
  bool is_finalized() override {
    int flag = 0;
    return call_.Finalized(&flag) == 0 && flag != 0;
  }
  Result<ThreadLevel> init(ThreadLevel wanted) override {
    int provided = 0;
    const int level = Abi::kThreadLevels[static_cast<int>(wanted)];
    HVD_TRY(check("MPI_Init_thread", call_.Init_thread(nullptr, nullptr, level, &provided)));
    return level_of(provided);
  }
  Result<ThreadLevel> thread_level() override {
    int provided = 0;
    HVD_TRY(check("MPI_Query_thread", call_.Query_thread(&provided)));
    return level_of(provided);
  }
  Status finalize() override { return check("MPI_Finalize", call_.Finalize()); }

  Comm world() override { return to_comm(constant_.world); }
  Comm comm_at(const void* address) override {
    H handle;
    std::memcpy(&handle, address, sizeof handle);
    return to_comm(handle);
  }
  Status duplicate(Comm comm, Comm* out, Request& request) override {
    const Turn turn(*this);
    static_assert(sizeof(H) <= sizeof *out, "a handle fits into a word");
    std::memset(out, 0, sizeof *out);
    H pending{};
    HVD_TRY(check("MPI_Comm_idup",
                  call_.Comm_idup(handle_of(comm), reinterpret_cast<H*>(out), &pending)));
    request = to_request(pending);
    return Status::ok();
  }
  Status return_errors(Comm comm) override {
    const Turn turn(*this);
    return check("MPI_Comm_set_errhandler",
                 call_.Comm_set_errhandler(handle_of(comm), constant_.errors_return));
  }
  Result<Comm> subset(Comm comm, std::span<const int> ranks) override {
    const Turn turn(*this);
    H whole{}, part{}, made{};
    HVD_TRY(check("MPI_Comm_group", call_.Comm_group(handle_of(comm), &whole)));
    const Status included =
        check("MPI_Group_incl",
              call_.Group_incl(whole, static_cast<int>(ranks.size()), ranks.data(), &part));
    call_.Group_free(&whole);
    HVD_TRY(included);
    const Status created =
        check("MPI_Comm_create_group", call_.Comm_create_group(handle_of(comm), part, 0, &made));
    call_.Group_free(&part);
    HVD_TRY(created);
    return to_comm(made);
  }
  Result<int> rank(Comm comm) override {
    const Turn turn(*this);
    int rank = 0;
    HVD_TRY(check("MPI_Comm_rank", call_.Comm_rank(handle_of(comm), &rank)));
    return rank;
  }
  Result<int> size(Comm comm) override {
    const Turn turn(*this);
    int size = 0;
    HVD_TRY(check("MPI_Comm_size", call_.Comm_size(handle_of(comm), &size)));
    return size;
  }
  Result<int> largest_tag(Comm comm) override {
    const Turn turn(*this);
    int* value = nullptr;
    int found = 0;
    HVD_TRY(check("MPI_Comm_get_attr",
                  call_.Comm_get_attr(handle_of(comm), Abi::kTagUpperBound, &value, &found)));
    constexpr int kLeastOfTheStandard = 32767;
    return found != 0 && value != nullptr ? *value : kLeastOfTheStandard;
  }

  Status send(Comm comm, std::span<const std::byte> data, int to, int tag,
              Request& request) override {
    const Turn turn(*this);
    H made{};
    HVD_TRY(check("MPI_Issend", call_.Issend(data.data(), static_cast<int>(data.size()),
                                             constant_.byte, to, tag, handle_of(comm), &made)));
    request = to_request(made);
    return Status::ok();
  }
  Status receive(Comm comm, std::span<std::byte> data, int from, int tag,
                 Request& request) override {
    const Turn turn(*this);
    H made{};
    HVD_TRY(check(
        "MPI_Irecv",
        call_.Irecv(data.data(), static_cast<int>(data.size()), constant_.byte,
                    from == kAnySource ? Abi::kAnySource : from, tag, handle_of(comm), &made)));
    request = to_request(made);
    return Status::ok();
  }
  Result<std::optional<Arrival>> probe(Comm comm, int tag) override {
    const Turn turn(*this);
    int flag = 0;
    S status{};
    HVD_TRY(
        check("MPI_Iprobe", call_.Iprobe(Abi::kAnySource, tag, handle_of(comm), &flag, &status)));
    if (flag == 0) return std::optional<Arrival>();
    HVD_TRY_ASSIGN(const Arrival arrival, arrival_of(status));
    return std::optional(arrival);
  }
  Result<bool> test(Request& request, Arrival* arrival) override {
    const Turn turn(*this);
    H pending = handle_of(request);
    int flag = 0;
    S status{};
    HVD_TRY(check("MPI_Test", call_.Test(&pending, &flag, &status)));
    request = to_request(pending);
    if (flag == 0) return false;
    if (arrival != nullptr) {
      HVD_TRY_ASSIGN(*arrival, arrival_of(status));
    }
    return true;
  }
  Status cancel(Request& request) override {
    const Turn turn(*this);
    H pending = handle_of(request);
    S status{};
    HVD_TRY(check("MPI_Cancel", call_.Cancel(&pending)));
    HVD_TRY(check("MPI_Wait", call_.Wait(&pending, &status)));
    request = to_request(pending);
    return Status::ok();
  }

  bool can_reduce(DType dtype, ReduceOp op) const override {
    return is_mpi_type(dtype) && op != ReduceOp::kAdasum;
  }
  Status allreduce(Comm comm, const void* in, void* out, size_t count, DType dtype, ReduceOp op,
                   Request& request) override {
    const Turn turn(*this);
    HVD_ASSERT(count <= INT_MAX, "callers cut what is larger");
    H made{};
    HVD_TRY(check("MPI_Iallreduce",
                  call_.Iallreduce(in == out ? Abi::in_place() : in, out, static_cast<int>(count),
                                   constant_.types[static_cast<int>(dtype)], op_of(op),
                                   handle_of(comm), &made)));
    request = to_request(made);
    return Status::ok();
  }

 private:
  // Holds the lock only where the library wants one call at a time.
  class Turn {
   public:
    explicit Turn(Library& library) : mutex_(library.takes_turns_ ? &library.mutex_ : nullptr) {
      if (mutex_ != nullptr) mutex_->lock();
    }
    ~Turn() {
      if (mutex_ != nullptr) mutex_->unlock();
    }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

   private:
    std::mutex* mutex_;
  };

  template <typename Word>
  static Word to_word(H handle) {
    uintptr_t word = 0;
    std::memcpy(&word, &handle, sizeof handle);
    return static_cast<Word>(word);
  }
  static Comm to_comm(H handle) { return to_word<Comm>(handle); }
  static Request to_request(H handle) { return to_word<Request>(handle); }
  template <typename Word>
  static H handle_of(Word word) {
    H handle;
    std::memcpy(&handle, &word, sizeof handle);
    return handle;
  }

  Status check(const char* function, int code) {
    if (code == 0) return Status::ok();
    char text[8192] = {};
    int length = 0;
    if (call_.Error_string(code, text, &length) != 0) length = 0;
    return Status(StatusCode::kUnknownError,
                  concat(name_, ": ", function, " failed with code ", code, ": ",
                         std::string_view(text, static_cast<size_t>(length))));
  }
  Result<ThreadLevel> level_of(int provided) {
    for (int i = 3; i >= 0; --i) {
      if (provided >= Abi::kThreadLevels[i]) return static_cast<ThreadLevel>(i);
    }
    return unknown_error(concat(name_, ": level of thread support ", provided, " is unknown"));
  }
  Result<Arrival> arrival_of(const S& status) {
    int count = 0;
    HVD_TRY(check("MPI_Get_count", call_.Get_count(&status, constant_.byte, &count)));
    return Arrival{.source = status.source, .bytes = static_cast<size_t>(count)};
  }
  H op_of(ReduceOp op) const {
    switch (op) {
      case ReduceOp::kMin:
        return constant_.min;
      case ReduceOp::kMax:
        return constant_.max;
      case ReduceOp::kProduct:
        return constant_.product;
      case ReduceOp::kSum:
      case ReduceOp::kAverage:  // the caller divides
      case ReduceOp::kAdasum:
        break;
    }
    return constant_.sum;
  }

  std::string name_;
  Functions<Abi> call_{};
  Constants<Abi> constant_{};
  bool takes_turns_ = false;  // set before a second thread calls
  std::mutex mutex_;
};

}  // namespace hvd::mpi
